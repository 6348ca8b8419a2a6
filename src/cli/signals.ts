/** Listens to what ends a program: Ctrl-C and kill. Returns what ends the listening. */
export function onSignals(listener: (signal: NodeJS.Signals) => void): () => void {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.removeListener(signal, listener);
  };
}
