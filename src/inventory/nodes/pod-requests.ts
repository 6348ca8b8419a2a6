import type { Container, Pod } from '../../kube/types.ts';
import { addAmounts, type Amounts, maxAmounts, toAmounts } from '../amounts.ts';

function requestsOfContainer(container: Container): Amounts {
  // An extended resource may have a limit alone. The API server then uses the limit as the request.
  return { ...toAmounts(container.resources?.limits), ...toAmounts(container.resources?.requests) };
}

/** What the scheduler reserves for a pod (kubernetes component-helpers/resource/helpers.go, PodRequests). */
export function requestsOfPod(pod: Pick<Pod, 'spec'>): Amounts {
  let running: Amounts = {};
  let peak: Amounts = {};
  for (const init of pod.spec?.initContainers ?? []) {
    const own = requestsOfContainer(init);
    if (init.restartPolicy === 'Always') {
      running = addAmounts(running, own);
      peak = maxAmounts(peak, running);
    } else {
      peak = maxAmounts(peak, addAmounts(running, own));
    }
  }
  for (const container of pod.spec?.containers ?? []) running = addAmounts(running, requestsOfContainer(container));
  const total = addAmounts(maxAmounts(running, peak), toAmounts(pod.spec?.overhead));
  return { ...total, pods: 1 };
}
