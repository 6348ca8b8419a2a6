import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import type { InstanceRecord, MetricsRecord } from '../../../wire/records.ts';
import { chartTheme, keepDrawn } from '../parts/chart-theme.ts';
import { useRead } from '../parts/use-read.ts';
import { drawnOf } from './measures.ts';

const HEIGHT = 130;
/** As often as there is another value. */
const EVERY_MS = 15_000;

type Drawn = ReturnType<typeof drawnOf>[number];

function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}

function optionsOf(width: number, { lines, limit, show }: Drawn): UPlot.Options {
  const { bar, axis } = chartTheme();
  return {
    width,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_chart, _least, most) => [0, limit ?? (most > 0 ? most * 1.1 : 1)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, space: 64, values: (_chart, splits) => splits.map(timeOf) },
      { ...axis, size: 68, space: 36, values: (_chart, splits) => splits.map(show) },
    ],
    series: [{}, ...lines.map(() => ({ stroke: bar, width: 1.5, points: { show: false } }))],
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
      (width) => new UPlot(optionsOf(width, drawn), [times, ...lines.map((values) => [...values])], target),
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
