/** Milliseconds of CPU time that work takes on its own thread, so that a busy machine does not lengthen them. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const start = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1000;
}
