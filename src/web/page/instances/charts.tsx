import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import type { InstanceRecord, MetricsRecord } from '../../../wire/records.ts';
import { chartTheme, keepDrawn } from '../parts/chart-theme.ts';
import { useRead } from '../parts/use-read.ts';
import { clocks, drawnOf, known } from './measures.ts';

const HEIGHT = 130;
/** What a chart shows at least, seconds. */
const SHORTEST_S = 60;
/** As often as there is another value. */
const EVERY_MS = 15_000;

type Drawn = ReturnType<typeof drawnOf>[number];

/** @param times seconds since the epoch */
function optionsOf(width: number, { lines, top, show }: Drawn, times: readonly number[]): UPlot.Options {
  const { bar, axis } = chartTheme();
  return {
    width,
    height: HEIGHT,
    padding: [8, 32, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      // Of one value uPlot would show days.
      x: { range: () => [times[0] ?? 0, Math.max(times.at(-1) ?? 0, (times[0] ?? 0) + SHORTEST_S)] },
      y: { range: () => [0, top] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 32,
        gap: 10,
        space: 84,
        values: (_chart, splits) => clocks(splits),
      },
      // The bounds, and one line between them: steps of bytes would not meet what there is.
      { ...axis, size: 68, splits: () => [0, top / 2, top], values: (_chart, splits) => splits.map(show) },
    ],
    series: [{}, ...lines.map((values) => ({ stroke: bar, width: 1.5, points: { show: known(values).length === 1 } }))],
  };
}

function TimeChart({ drawn, from, step }: { drawn: Drawn; from: string; step: number }) {
  const box = useRef<HTMLDivElement>(null);
  const { title, now, lines } = drawn;
  useEffect(() => {
    const target = box.current;
    if (target === null) return undefined;
    const began = Date.parse(from) / 1000;
    const times = (lines[0] ?? []).map((_, at) => began + at * step);
    return keepDrawn(
      target,
      HEIGHT,
      (width) => new UPlot(optionsOf(width, drawn, times), [times, ...lines.map((values) => [...values])], target),
    );
  }, [from, lines]);
  return (
    <div>
      <p class="measure">
        {title} <strong>{now}</strong>
      </p>
      <div class="chart short" ref={box} role="img" aria-label={`${title} of the last hour, now ${now}`} />
    </div>
  );
}

/** What the instance uses, live. Nothing where nothing measures it. */
export function Charts({ instance }: { instance: InstanceRecord }) {
  const { id, state, simulated, install_monitoring: isMeasured } = instance;
  const isThere = isMeasured && !simulated && state === 'running';
  const { value, trouble } = useRead<MetricsRecord>(
    isThere ? `/instances/${encodeURIComponent(id)}/metrics` : '',
    EVERY_MS,
  );
  if (!isThere) return null;
  const all = value === undefined ? [] : drawnOf(value);
  return (
    <section class="card" aria-labelledby="charts-title">
      <h2 id="charts-title">Load of the last hour</h2>
      {value !== undefined && all.length > 0 ? (
        <div class="charts">
          {all.map((drawn) => (
            <TimeChart key={drawn.title} drawn={drawn} from={value.from} step={value.step_seconds} />
          ))}
        </div>
      ) : (
        <p class="soft">{trouble || 'The first values come some seconds after the start.'}</p>
      )}
    </section>
  );
}
