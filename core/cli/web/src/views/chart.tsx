// A series of numbers over time as a chart, which moves as they come.
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

interface Point {
  time: string;
  value: number | null;
  min?: number | null;
  max?: number | null;
}

interface Series {
  name?: string;
  step?: string | null;
  points: Point[];
}

const HEIGHT = 320;
const MOST = 20_000;

export function isSeries(value: unknown): value is Series {
  const points = (value as Series | null)?.points;
  return Array.isArray(points) && points.length > 0 && points.every((one) => !Number.isNaN(Date.parse(one?.time)));
}

export function ChartView({ series }: { series: Series }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const data = useMemo(() => {
    const points = series.points.slice(-MOST);
    const of = (pick: (point: Point) => number | null | undefined): (number | null)[] =>
      points.map((point) => pick(point) ?? null);
    return [
      points.map((point) => Date.parse(point.time) / 1000),
      of((p) => p.value),
      of((p) => p.min),
      of((p) => p.max),
    ];
  }, [series]);
  const hasBand = series.points.some((point) => point.min !== point.max);
  useEffect(() => {
    const own = box.current;
    if (!own) return;
    const draw = (): void => {
      chart.current?.destroy();
      chart.current = new uPlot(options(own, series.name ?? 'value', hasBand), data as uPlot.AlignedData, own);
    };
    draw();
    const observer = new ResizeObserver(() => chart.current?.setSize({ width: own.clientWidth, height: HEIGHT }));
    observer.observe(own);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      observer.disconnect();
      scheme.removeEventListener('change', draw);
      chart.current?.destroy();
      chart.current = null;
    };
  }, [series.name, hasBand]);
  useEffect(() => chart.current?.setData(data as uPlot.AlignedData), [data]);
  const values = series.points.map((point) => point.value).filter((value) => value !== null);
  const last = values.at(-1);
  const least = values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const text = (value: number | undefined): string =>
    value === undefined || !Number.isFinite(value) ? '–' : value.toLocaleString('en', { maximumFractionDigits: 3 });
  return (
    <figure class="chart">
      <div
        ref={box}
        role="img"
        aria-label={`Chart of ${series.name ?? 'values'}: last ${text(last)}, from ${text(least)} to ${text(most)}`}
      />
      <figcaption>
        <span>
          last <b>{text(last)}</b>
        </span>
        <span>
          least <b>{text(least)}</b>
        </span>
        <span>
          most <b>{text(most)}</b>
        </span>
        <span>
          {series.points.length.toLocaleString('en')} points{series.step ? `, one for ${series.step}` : ''}
        </span>
      </figcaption>
    </figure>
  );
}

function options(box: HTMLElement, name: string, hasBand: boolean): uPlot.Options {
  const style = getComputedStyle(box);
  const colour = (variable: string): string => style.getPropertyValue(variable).trim();
  const axis: uPlot.Axis = {
    stroke: colour('--dim'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
    font: '12px system-ui, sans-serif',
  };
  const faint: uPlot.Series = { show: hasBand, stroke: 'transparent', points: { show: false } };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    series: [
      {},
      { label: name, stroke: colour('--accent'), width: 2, fill: hasBand ? 'transparent' : colour('--accent-faint') },
      { ...faint, label: 'min' },
      { ...faint, label: 'max' },
    ],
    bands: hasBand ? [{ series: [3, 2], fill: colour('--accent-faint') }] : [],
    axes: [axis, { ...axis, size: 70 }],
    legend: { show: false },
    cursor: { points: { size: 7 } },
  };
}
