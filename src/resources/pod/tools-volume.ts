import type { Container, Pod } from '../../kube/types.ts';

/** Where an instance has the tools: static programs that an image may lack, read-only. */
export const TOOLS_PATH = '/.berth';
/** busybox, tini, sftp-server, scp, relay, monitor and direct. */
export const TOOLS_BIN = `${TOOLS_PATH}/bin`;
/** One link per busybox program. */
export const TOOLS_APPLETS = `${TOOLS_PATH}/applets`;
/** The container that users log in to. */
export const MAIN_CONTAINER = 'main';

/** Port on the loopback of an instance with ports, where the helper of the direct way takes the gateways of ports. */
export const DIRECT_PORT = 44_190;

const VOLUME = 'berth-tools';
/** The init container that brings the tools. */
export const TOOLS_CONTAINER = VOLUME;
/** The folder of the tools image that is copied. */
export const TOOLS_SOURCE = '/tools';
const SIZE_LIMIT = '64Mi';

type Volume = NonNullable<NonNullable<Pod['spec']>['volumes']>[number];
type VolumeMount = NonNullable<Container['volumeMounts']>[number];

export interface ToolsVolume {
  volume: Volume;
  /** Fills the volume. Requests no GPU. */
  initContainer: Container;
  /** For the main container. */
  mount: VolumeMount;
}

/** The volume that brings the tools into any image. Pod Security restricted admits it. */
export function toolsVolume(toolsImage: string): ToolsVolume {
  return {
    volume: { name: VOLUME, emptyDir: { sizeLimit: SIZE_LIMIT } },
    initContainer: {
      name: TOOLS_CONTAINER,
      image: toolsImage,
      imagePullPolicy: 'IfNotPresent',
      command: [`${TOOLS_SOURCE}/bin/busybox`, 'cp', '-R', '-d', `${TOOLS_SOURCE}/.`, `${TOOLS_PATH}/`],
      resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '1', memory: '64Mi' } },
      securityContext: {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        privileged: false,
        readOnlyRootFilesystem: true,
        // As the image's own user, or one that OpenShift chooses.
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      volumeMounts: [{ name: VOLUME, mountPath: TOOLS_PATH }],
    },
    mount: { name: VOLUME, mountPath: TOOLS_PATH, readOnly: true },
  };
}

/** Whether a pod's main container has the tools. */
export function hasTools(pod: Pick<Pod, 'spec'>): boolean {
  const main = pod.spec?.containers.find(({ name }) => name === MAIN_CONTAINER);
  return main?.volumeMounts?.some(({ mountPath }) => mountPath === TOOLS_PATH) ?? false;
}
