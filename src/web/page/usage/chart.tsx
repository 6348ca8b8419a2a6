import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { chartTheme, keepDrawn } from '../parts/chart-theme.ts';
import { decimalsOf } from './report.ts';

const HEIGHT = 180;
const DAY = 86_400;
/** Days between two labels. */
const STEPS = [1, 2, 5, 7, 14, 30, 60].map((days) => days * DAY);
/** Between two lines of amounts, from the smallest that the labels tell apart. */
const AMOUNTS = Array.from({ length: 17 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** (power - 4))).flat();

function dayLabel(seconds: number): string {
  return new Date(seconds * 1000).toLocaleDateString(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });
}

/** An amount with as many decimals at least. */
type Show = (value: number, decimals: number) => string;

function amountLabels(splits: readonly number[], show: Show): string[] {
  const [first = 0, second = first + 1] = splits;
  return splits.map((value) => show(value, decimalsOf(second - first)));
}

function optionsOf(width: number, show: Show): UPlot.Options {
  const { bar, axis } = chartTheme();
  return {
    width,
    height: HEIGHT,
    padding: [8, 20, 0, 0],
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { show: false },
    cursor: { show: false },
    scales: {
      // Half a day more at both ends, or the first and the last bar would be cut.
      x: { range: (_chart, least, most) => [least - DAY / 2, most + DAY / 2] },
      y: { range: (_chart, least, most) => [Math.min(0, least * 1.1), most > 0 ? most * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 32,
        gap: 10,
        space: 64,
        incrs: STEPS,
        values: (_chart, splits) => splits.map(dayLabel),
      },
      { ...axis, size: 64, incrs: AMOUNTS, values: (_chart, splits) => amountLabels(splits, show) },
    ],
    series: [
      {},
      { fill: bar, width: 0, points: { show: false }, paths: UPlot.paths.bars?.({ size: [0.7, 40], radius: 0.15 }) },
    ],
  };
}

/** A bar for each day. The table beside it says the same to those who cannot see it. */
export function DayChart(props: { title: string; days: readonly number[]; values: readonly number[]; show: Show }) {
  const { title, days, values, show } = props;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const target = box.current;
    if (target === null) return undefined;
    return keepDrawn(target, HEIGHT, (width) => new UPlot(optionsOf(width, show), [[...days], [...values]], target));
  }, [days, values]);
  return <div class="chart" ref={box} role="img" aria-label={title} />;
}
