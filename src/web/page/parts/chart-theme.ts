import type UPlot from 'uplot';

/** What charts need of the theme: a canvas knows no CSS, so its colours are read for it. */
export function chartTheme(): { bar: string; axis: UPlot.Axis } {
  const variables = getComputedStyle(document.documentElement);
  // `light-dark()` is resolved where a property uses it, so a probe says what the theme has.
  const probe = document.createElement('i');
  document.body.append(probe);
  const resolved = (name: string): string => {
    probe.style.color = variables.getPropertyValue(name).trim();
    return getComputedStyle(probe).color;
  };
  const [bar, soft, line] = [resolved('--accent'), resolved('--soft'), resolved('--line')];
  probe.remove();
  return {
    bar,
    axis: { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: '12px system-ui' },
  };
}

/**
 * Backgrounds of CSS as they are in the theme of now, with colours in place of variables: a browser works out all of the
 * style of an element anew when a variable is set in it, and only the background when a colour is.
 */
export function plainBackgrounds(paints: readonly string[]): string[] {
  const probes = new Map([...new Set(paints)].map((paint) => [paint, document.createElement('i')]));
  for (const [paint, probe] of probes) probe.style.background = paint;
  document.body.append(...probes.values());
  const plain = new Map<string, string>();
  for (const [paint, probe] of probes) {
    const { backgroundColor, backgroundImage } = getComputedStyle(probe);
    plain.set(paint, backgroundImage === 'none' ? backgroundColor : backgroundImage);
  }
  for (const probe of probes.values()) probe.remove();
  return paints.map((paint) => plain.get(paint) ?? '');
}

/** Calls now and whenever the theme changes. Returns what ends it. */
export function inEachTheme(call: () => void): () => void {
  call();
  const theme = matchMedia('(prefers-color-scheme: dark)');
  theme.addEventListener('change', call);
  return () => theme.removeEventListener('change', call);
}

/** Draws a chart into `target`, and again when the theme changes; it is as wide as `target`. Returns what ends it. */
export function keepDrawn(target: HTMLElement, height: number, make: (width: number) => UPlot): () => void {
  let chart: UPlot | undefined;
  const draw = (): void => {
    chart?.destroy();
    chart = make(target.clientWidth);
  };
  const endDrawing = inEachTheme(draw);
  const resized = new ResizeObserver(() => chart?.setSize({ width: target.clientWidth, height }));
  resized.observe(target);
  return () => {
    resized.disconnect();
    endDrawing();
    chart?.destroy();
  };
}
