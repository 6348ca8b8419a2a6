import type { PodTarget } from '../../access/pod-target.ts';
import type { StreamEndpoint } from '../../kube/streams/websocket.ts';
import { MONITOR_PORT, type MonitorLine } from '../../resources/pod/monitor.ts';
import { JUPYTER_PORT, JUPYTER_PROGRAMS } from '../../resources/pod/jupyter.ts';
import { TOOLS_BIN } from '../../resources/pod/tools-volume.ts';
import { startInPod } from './pod-process.ts';
import { BUSYBOX } from './session-script.ts';

const TIMEOUT_MS = 10_000;

/** Runs a command as sessions do, without its output. Undefined without a status in ten seconds. Never rejects. */
async function statusOf(endpoint: StreamEndpoint, target: PodTarget, command: string): Promise<number | undefined> {
  const action = { kind: 'command', command } as const;
  try {
    const process = await startInPod(endpoint, target, { action }, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    process.stdin.end();
    process.stdout.resume();
    process.stderr.resume();
    const exit = await process.exit;
    return exit.kind === 'exited' ? exit.code : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a login would work now, apart from the client's network. Never rejects; takes at most ten seconds. */
export async function checkLogin(endpoint: StreamEndpoint, target: PodTarget): Promise<boolean> {
  return (await statusOf(endpoint, target, 'true')) === 0;
}

const MISSING = 3;
const SILENT = 4;
// Whether it answers comes first: the user may have started a Jupyter that is not on the PATH.
const LOOK_FOR_JUPYTER = `${BUSYBOX} timeout 5 ${TOOLS_BIN}/relay tcp 127.0.0.1 ${JUPYTER_PORT} </dev/null 2>/dev/null | grep -q '^ok$' && exit
command -v ${JUPYTER_PROGRAMS.join(' >/dev/null || command -v ')} >/dev/null || exit ${MISSING}
exit ${SILENT}`;

/** Jupyter's state in an instance with tools; undefined when unknown. Never rejects; takes at most ten seconds. */
export async function checkJupyter(
  endpoint: StreamEndpoint,
  target: PodTarget,
): Promise<'answers' | 'silent' | 'missing' | undefined> {
  const status = await statusOf(endpoint, target, LOOK_FOR_JUPYTER);
  if (status === undefined) return undefined;
  if (status === MISSING) return 'missing';
  return status === 0 ? 'answers' : 'silent';
}

/** Bytes of the exporter's line that are read. */
const MAX_LINE = 256;
const MONITOR_LINE = /^(nvidia-smi|rocm-smi|none|failed) (\d{1,3}) (-|\d{1,10})$/m;

/** The start of what a command writes, as sessions run it. Rejects without an end in ten seconds. */
async function outputOf(endpoint: StreamEndpoint, target: PodTarget, command: string): Promise<string> {
  const action = { kind: 'command', command } as const;
  const process = await startInPod(endpoint, target, { action }, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  process.stdin.end();
  process.stderr.resume();
  let text = '';
  process.stdout.on('data', (bytes: Buffer) => {
    if (text.length < MAX_LINE) text += bytes.toString('latin1').slice(0, MAX_LINE - text.length);
  });
  await process.exit;
  return text;
}

/** Reads the line among what the shell of the image may write before it. */
export function readMonitorLine(text: string): MonitorLine | undefined {
  const [, tool, measured, idle] = MONITOR_LINE.exec(text) ?? [];
  if (tool === undefined) return undefined;
  return {
    tool: tool as MonitorLine['tool'],
    measured: Number(measured),
    idleSeconds: idle === '-' ? undefined : Number(idle),
  };
}

/** Asks the exporter of an instance; undefined when it does not answer. Never rejects; takes at most ten seconds. */
export async function checkMonitor(endpoint: StreamEndpoint, target: PodTarget): Promise<MonitorLine | undefined> {
  const command = `${TOOLS_BIN}/monitor state ${MONITOR_PORT}`;
  return await outputOf(endpoint, target, command).then(readMonitorLine, () => undefined);
}
