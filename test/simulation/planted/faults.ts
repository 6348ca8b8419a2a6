/** A fault that is put into shipped code for one run, as a text that takes the place of another. */
export interface PlantedFault {
  name: string;
  /** Below src. */
  file: string;
  from: string;
  to: string;
}

const DECIDE = 'controllers/gpu-instance/decide';
const ACT = 'controllers/gpu-instance/act';

/** Each breaks something that the product promises. The simulation must find them. */
export const PLANTED: readonly PlantedFault[] = [
  {
    name: 'a pod that was deleted by force counts as ended',
    file: 'inventory/nodes/pod-end.ts',
    from: 'if (deletionTimestamp === undefined) return true;',
    to: 'if (deletionTimestamp === undefined) return true;\n  if (deletionGracePeriodSeconds === 0) return false;',
  },
  {
    name: 'a pod that is being deleted counts as ended',
    file: 'inventory/nodes/pod-end.ts',
    from: 'if (deletionTimestamp === undefined) return true;',
    to: 'return deletionTimestamp === undefined;',
  },
  {
    name: 'the finalizer of a pod goes while its program runs',
    file: 'controllers/pods/controller.ts',
    from: 'if (mayRun(pod, node)) return;',
    to: 'if (pod.metadata.deletionTimestamp === undefined && mayRun(pod, node)) return;',
  },
  {
    name: 'the finalizer of a pod is never taken off',
    file: 'controllers/pods/controller.ts',
    from: 'if (mayRun(pod, node)) return;',
    to: 'if (mayRun(pod, node) || key !== "") return;',
  },
  {
    name: 'pods whose node is gone are not looked at again',
    file: 'controllers/pods/controller.ts',
    from: 'isLost(before) === isLost(after) ? []',
    to: 'isLost(before) !== undefined ? []',
  },
  {
    name: 'a start begins while the pod of the last one ends',
    file: `${DECIDE}/plan.ts`,
    from: "    if (running.length > 0) return { do: 'observe' };\n    return isFrozen",
    to: '    return isFrozen',
  },
  {
    name: 'an instance waits for a place while its last pod runs',
    file: `${DECIDE}/plan.ts`,
    from: 'if (deleting || running.length > 0) return',
    to: 'if (deleting) return',
  },
  {
    name: 'the place is given back before the program has ended',
    file: `${DECIDE}/plan.ts`,
    from: "if (running.length === 0) return { do: 'release', ending };",
    to: "if (running.length < 5) return { do: 'release', ending };",
  },
  {
    name: 'an instance goes while its pod runs',
    file: `${DECIDE}/plan.ts`,
    from: 'if (deleting && running.length === 0 && pods.every(isKeptByOthers))',
    to: 'if (deleting)',
  },
  {
    name: 'a finalizer of others keeps an instance for ever',
    file: `${DECIDE}/plan.ts`,
    from: 'if (deleting && running.length === 0 && pods.every(isKeptByOthers))',
    to: 'if (deleting && pods.length === 0)',
  },
  {
    name: 'a pod without a claim is left alone',
    file: `${DECIDE}/plan.ts`,
    from: "if (live(pods, now).length > 0) return { do: 'deletePods', pods: live(pods, now) };\n  // Another",
    to: '// Another',
  },
  {
    name: 'what a person switches off goes on',
    file: `${DECIDE}/plan.ts`,
    from: "return spec.powerState === 'Stopped' ? SWITCHED_OFF : undefined;",
    to: 'return undefined;',
  },
  {
    name: 'the pod of a start is made on an old view',
    file: `${DECIDE}/plan.ts`,
    from: "  'createPod',\n  'end',",
    to: "  'end',",
  },
  {
    name: 'an instance that was deleted does not end its start',
    file: `${DECIDE}/plan.ts`,
    from: 'if (metadata.deletionTimestamp !== undefined) return DELETED;',
    to: '',
  },
  {
    name: 'a start that is over keeps its place',
    file: `${DECIDE}/plan.ts`,
    from: 'if (isOver(instance, pod)) return endingOfPod(observed, pod);',
    to: '',
  },
  {
    name: 'a pod that is taken away does not end its start',
    file: `${DECIDE}/plan.ts`,
    from: 'if (isTakenAway(pod) && !hadEndedBefore(pod)) return withNodeTime(endingOfDeletion(observed, pod), observed);',
    to: '',
  },
  {
    name: 'the grace has no end on the bill',
    file: `${DECIDE}/finish.ts`,
    from: 'const latest = Math.min(now, decided + GRACE_MS);',
    to: 'const latest = now + 3_600_000;\n  if (finished > 0) return { ...instance, status: { ...status, ending: { ...ending, finishedAt: new Date(latest).toISOString() } } };',
  },
  {
    name: 'the meter begins with the claim',
    file: 'resources/instances/meter.ts',
    from: 'return claim?.byPreemption === true ? Date.parse(claim.grantedAt) : firstRan(stages);',
    to: 'return claim === undefined ? undefined : Date.parse(claim.grantedAt) - 60_000;',
  },
  {
    name: 'silences are billed',
    file: 'ledger/interval.ts',
    from: 'Math.max(0, end - from - silentMs(status.silences, from, end))',
    to: 'Math.max(0, end - from)',
  },
  {
    name: 'the bill of a start is written twice',
    file: `${DECIDE}/usage.ts`,
    from: '...(interval ? [interval] : [])]',
    to: '...(interval ? [interval, interval] : [])]',
  },
  {
    name: 'a full bill is not recorded',
    file: `${DECIDE}/usage.ts`,
    from: 'return { ...status, intervals: [], records: (status.records ?? 0) + written };',
    to: 'return { ...status, records: (status.records ?? 0) + written };',
  },
  {
    name: 'an instance goes without a usage record',
    file: `${ACT}/clean-up.ts`,
    from: '  await releaseDisk(run, instance);\n  await writeUsageRecords(run, instance);',
    to: '  await releaseDisk(run, instance);',
  },
  {
    name: 'the disk of an instance goes although it is to be kept',
    file: `${ACT}/clean-up.ts`,
    from: "if (instance.spec.diskPolicy === 'Delete') {",
    to: 'if (instance.spec.diskPolicy !== undefined) {',
  },
  {
    name: 'the disk goes when a start ends',
    file: `${ACT}/take-step.ts`,
    from: "    case 'release': {",
    to: "    case 'release': {\n      await run.deps.client.delete(\n        { group: '', version: 'v1', kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims', namespaced: true },\n        { namespace: instance.metadata.namespace, name: instance.status?.disk?.name ?? 'none' },\n      );",
  },
  {
    name: 'a grant is not counted until the cache shows it',
    file: 'inventory/inventory.ts',
    from: '    this.#assumptions.add(key, assumed);\n    this.#nodes.setClaim(key, claimHolding(key, assumed));',
    to: '',
  },
  {
    name: 'a grant is forgotten when its write may have been lost',
    file: `${ACT}/write-claim.ts`,
    from: 'if (!isUncertain(error)) deps.inventory.forget(key);',
    to: 'deps.inventory.forget(key);',
  },
  {
    name: 'a leader begins before its caches have caught up',
    file: 'controllers/lead.ts',
    from: 'if (!(await catchUp(deps, over))) return;',
    to: '',
  },
  {
    name: 'what an earlier term assumed is kept',
    file: 'controllers/lead.ts',
    from: 'deps.inventory.forgetAll();',
    to: '',
  },
  {
    name: 'a replica that lost the lease goes on writing',
    file: 'runtime/lease.ts',
    from: 'return this.#timeLeft() > 0 && this.#isClockRight();',
    to: 'return this.#record !== undefined;',
  },
  {
    name: 'a lease is taken while its holder is alive',
    file: 'runtime/lease.ts',
    from: "if (current.holder === '' || current.holder === identity) return false;",
    to: 'return current.holder === "never" && clock.monotonic() < 0 && identity === "";',
  },
  {
    name: 'no worker waits for its own writes',
    file: 'runtime/fence.ts',
    from: '    const open = this.#marks.get(key);\n    if (!open) return 0;\n    const now',
    to: '    const open = this.#marks.get(key);\n    if (!open || key !== "") return 0;\n    const now',
  },
  {
    name: 'a key that fails is not tried again',
    file: 'runtime/controller.ts',
    from: '    const waitMs = this.#retries.next(key);',
    to: "    if (key !== '') return 'error';\n    const waitMs = this.#retries.next(key);",
  },
  {
    name: 'a key that is added while it is worked on is lost',
    file: 'runtime/workqueue.ts',
    from: 'if (again !== undefined && !this.#stopped) this.#enqueue(key, again);',
    to: 'if (again !== undefined && this.#stopped) this.#enqueue(key, again);',
  },
  {
    name: 'a watch goes on although its version is too old',
    file: 'kube/watch/reflector.ts',
    from: "return refused && !mayHealByWaiting ? 'empty' : 'listed';",
    to: "return refused && mayHealByWaiting ? 'empty' : 'listed';",
  },
  {
    name: 'a list forgets what is gone',
    file: 'kube/watch/cache.ts',
    from: '.filter((key) => !listed.has(key)).map(',
    to: '.filter((key) => !listed.has(key) && key === "").map(',
  },
  {
    name: 'a create is sent again although it may have worked, and its answer believed',
    file: 'kube/client/retry.ts',
    from: "if (error.status !== 0 || error.reason === 'TooLarge') return false;",
    to: 'return true;',
  },
  {
    name: 'an answered instance is removed as if nobody knew of it',
    file: 'http/features/instances/create.ts',
    from: '{ metadata: { uid, annotations: { [CONFIRM_BY]: null } } }',
    to: '{ metadata: { uid } }',
  },
  {
    name: 'an instance whose client left stays',
    file: 'http/features/instances/create.ts',
    from: '  const kept = hasKey ? undefined : await removeUnknown(deps, instance);',
    to: '  const kept = undefined;',
  },
  {
    name: 'the line never moves',
    file: 'controllers/gpu-instance/waiting-line.ts',
    from: '        found.push(waiter);\n        places -= 1;',
    to: '        places -= 1;',
  },
  {
    name: 'a start that was granted stays in line',
    file: 'controllers/gpu-instance/waiting-line.ts',
    from: '    if (left !== undefined && left.node !== node) this.#passOn(left, node);',
    to: '    if (node !== "") return;\n    if (left !== undefined && left.node !== node) this.#passOn(left, node);',
  },
  {
    name: 'nobody looks for what became free',
    file: 'inventory/inventory.ts',
    from: '    for (const listener of this.#listeners) listener();\n  }\n\n  #expire',
    to: '  }\n\n  #expire',
  },
  {
    name: 'a preempted instance does not come back',
    file: `${DECIDE}/endings.ts`,
    from: "Preempted: { whileEnding: 'Preempted', afterRelease: 'Preempted', next: 'restart', blamesNode: false }",
    to: "Preempted: { whileEnding: 'Preempted', afterRelease: 'Preempted', next: 'stop', blamesNode: false }",
  },
  {
    name: 'an instance whose node is lost does not come back',
    file: `${DECIDE}/endings.ts`,
    from: "NodeLost: { whileEnding: 'NodeLost', afterRelease: 'NodeLost', next: 'restart', blamesNode: false }",
    to: "NodeLost: { whileEnding: 'NodeLost', afterRelease: 'NodeLost', next: 'stop', blamesNode: false }",
  },
  {
    name: 'a start after a failure has no pause and no limit',
    file: `${DECIDE}/failures.ts`,
    from: 'return Math.max(pausedUntil(instance, now), pauseEnd(instance.status?.preemptions, now), limitedUntil(instance, now));',
    to: 'return Math.min(0, pausedUntil(instance, now) + pauseEnd(instance.status?.preemptions, now) + limitedUntil(instance, now));',
  },
  {
    name: 'nodes that are not ready are offered',
    file: 'inventory/nodes/node-state.ts',
    from: "...(isNodeReady(node) ? [] : [{ reason: 'NotReady' } as const]),",
    to: '',
  },
  {
    name: 'GPUs of pods count only while they run',
    file: 'inventory/nodes/pod-requests.ts',
    from: "return status?.phase === 'Succeeded' || status?.phase === 'Failed';",
    to: "return status?.phase !== 'Running';",
  },
  {
    name: 'maxDuration never ends',
    file: `${DECIDE}/deadlines.ts`,
    from: 'return [lifetime(observed), idle(observed),',
    to: 'return [...[lifetime(observed)].slice(1), idle(observed),',
  },
];
