import type { GpuInstance, GpuInstanceStatus } from '../../resources/instances/gpu-instance.ts';
import { readTraceContext } from '../../runtime/tracing/trace-context.ts';
import type { Attributes, Tracer } from '../../runtime/tracing/tracer.ts';
import { type StartTrace, startTrace } from './decide/status/start-trace.ts';

/** Gets each write of a status: the instance before it, and what was written. */
export type NoteStatus = (before: GpuInstance, after: GpuInstanceStatus) => void;

/**
 * Emits the trace of a start at its end, from the times in the status, with what the API server has accepted. A leader
 * that dies between the write and the next export loses it. One whose cache is behind its predecessor's writes may emit
 * it again.
 */
export function traceStarts(tracer: Tracer): NoteStatus {
  return (before, after) => {
    const found = startTrace(before, after);
    if (found !== undefined) emit(tracer, found);
  };
}

function attributesOf({ tenant, instance, uid, start, pod, node, product, gpus }: StartTrace): Attributes {
  return {
    'berth.tenant': tenant,
    'berth.instance': instance,
    'berth.instance.uid': uid,
    'berth.instance.start': start,
    ...(pod !== undefined && { 'k8s.pod.name': pod }),
    ...(node !== undefined && { 'k8s.node.name': node }),
    ...(product !== undefined && { 'berth.gpu.product': product }),
    ...(gpus !== undefined && { 'berth.gpu.count': gpus }),
  };
}

function emit(tracer: Tracer, found: StartTrace): void {
  const { parent, from, to, ending, stages } = found;
  const span = tracer.start(
    { name: 'start instance', attributes: attributesOf(found), at: from },
    readTraceContext({ traceparent: parent }),
  );
  for (const stage of stages) span.child({ name: stage.name, at: stage.from }).end(stage.to);
  if (ending !== undefined) span.fail(ending);
  span.end(to);
}
