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

/** Draws a chart into `target`, and again when the theme changes; it is as wide as `target`. Returns what ends it. */
export function keepDrawn(target: HTMLElement, height: number, make: (width: number) => UPlot): () => void {
  let chart: UPlot | undefined;
  const draw = (): void => {
    chart?.destroy();
    chart = make(target.clientWidth);
  };
  draw();
  const resized = new ResizeObserver(() => chart?.setSize({ width: target.clientWidth, height }));
  resized.observe(target);
  const theme = matchMedia('(prefers-color-scheme: dark)');
  theme.addEventListener('change', draw);
  return () => {
    resized.disconnect();
    theme.removeEventListener('change', draw);
    chart?.destroy();
  };
}
