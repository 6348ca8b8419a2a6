import { helmUpgrade, rolesIn } from '../facts.ts';
import { byFault, check, type Problem } from '../finding.ts';

/** ValidatingAdmissionPolicy is stable from 1.30 on. The chart asks for as much. */
const LEAST_MINOR = 30;

function kubernetes(gitVersion: string): Problem[] {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? [];
  if (Number(major) !== 1 || Number(minor) >= LEAST_MINOR) return [];
  return [
    {
      severity: 'error',
      reason: 'KubernetesTooOld',
      objects: [],
      message: `The API server is ${gitVersion}, and Berth needs Kubernetes 1.${LEAST_MINOR} or newer.`,
      why: 'Older ones have no ValidatingAdmissionPolicy, which bounds what each role and each tenant may do.',
      remedy: 'kubectl version   # then upgrade the control plane',
    },
  ];
}

export const versions = check({
  name: 'versions',
  title: 'Kubernetes is new enough, and every role runs the same image',
  needs: ['deployments'],
  find({ deployments }, facts) {
    const { namespace, gitVersion } = facts;
    const roles = [...rolesIn(deployments, namespace)];
    const images = roles.flatMap(([role, { spec }]) => {
      const own = spec?.template.spec?.containers.find(({ name }) => name === 'berth')?.image;
      return own === undefined ? [] : [[own, role] as const];
    });
    const byImage = byFault(images);
    if (byImage.size <= 1) return kubernetes(gitVersion);
    const words = [...byImage].map(([image, own]) => `${own.join(', ')}: ${image}`).join('; ');
    const mixed: Problem = {
      severity: 'warning',
      reason: 'ImagesDiffer',
      objects: roles.map(([, { metadata }]) => `${namespace}/deployment/${metadata.name}`),
      message: `The roles run different images (${words}).`,
      why: 'Roles of different versions may not understand what the others write.',
      remedy: `${helmUpgrade(facts)}   # with the chart of one version`,
    };
    return [...kubernetes(gitVersion), mixed];
  },
});
