/** Does one step of a long run, and prints how long it took. */
export async function phase<T>(title: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now();
  try {
    return await work();
  } finally {
    process.stderr.write(`${title}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
  }
}
