import type { Container, Pod } from '../../kube/types.ts';

/** Where the tools stand in an instance: static programs that images may lack, read-only. */
export const TOOLS_PATH = '/.berth';
/** busybox, tini, sftp-server, scp and relay. */
export const TOOLS_BIN = `${TOOLS_PATH}/bin`;
/** One link per busybox program. */
export const TOOLS_APPLETS = `${TOOLS_PATH}/applets`;
/** The container that users log in to. */
export const MAIN_CONTAINER = 'main';

const VOLUME = 'berth-tools';
/** Where the tools image carries what it copies. */
export const TOOLS_SOURCE = '/tools';
const SIZE_LIMIT = '64Mi';

type Volume = NonNullable<NonNullable<Pod['spec']>['volumes']>[number];
type VolumeMount = NonNullable<Container['volumeMounts']>[number];

export interface ToolsVolume {
  volume: Volume;
  /** Fills the volume; passes Pod Security restricted and asks for no GPU. */
  initContainer: Container;
  /** For the main container. */
  mount: VolumeMount;
}

/**
 * The volume that carries a static shell, init, sftp server, scp and relay into any image. Every line of it is
 * admitted under Pod Security restricted.
 */
export function toolsVolume(toolsImage: string): ToolsVolume {
  return {
    volume: { name: VOLUME, emptyDir: { sizeLimit: SIZE_LIMIT } },
    initContainer: {
      name: VOLUME,
      image: toolsImage,
      imagePullPolicy: 'IfNotPresent',
      command: [`${TOOLS_SOURCE}/bin/busybox`, 'cp', '-R', '-d', `${TOOLS_SOURCE}/.`, `${TOOLS_PATH}/`],
      resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '1', memory: '64Mi' } },
      securityContext: {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        privileged: false,
        readOnlyRootFilesystem: true,
        runAsGroup: 65532,
        runAsNonRoot: true,
        runAsUser: 65532,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      volumeMounts: [{ name: VOLUME, mountPath: TOOLS_PATH }],
    },
    mount: { name: VOLUME, mountPath: TOOLS_PATH, readOnly: true },
  };
}

/** Whether a pod's main container carries the tools. */
export function hasTools(pod: Pick<Pod, 'spec'>): boolean {
  const main = pod.spec?.containers.find(({ name }) => name === MAIN_CONTAINER);
  return main?.volumeMounts?.some(({ mountPath }) => mountPath === TOOLS_PATH) ?? false;
}
