// `@kit/chart`: two plain charts. Every value also stands there as text.

interface Point {
  label: string;
  value: number;
}

interface ChartProps {
  title: string;
  data: Point[];
}

export function BarChart({ title, data }: ChartProps) {
  const most = Math.max(0, ...data.map((point) => point.value)) || 1;
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <dl className="bars">
        {data.map((point) => (
          <div key={point.label}>
            <dt>{point.label}</dt>
            <dd>
              <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <rect width={(Math.max(0, point.value) / most) * 100} height={10} />
              </svg>
              {point.value.toLocaleString()}
            </dd>
          </div>
        ))}
      </dl>
    </figure>
  );
}

export function LineChart({ title, data }: ChartProps) {
  const values = data.map((point) => point.value);
  const least = Math.min(...values);
  const range = Math.max(...values) - least || 1;
  const step = 300 / Math.max(1, data.length - 1);
  const points = values.map((value, at) => `${at * step},${90 - ((value - least) / range) * 80}`);
  const text = data.map((point) => `${point.label}: ${point.value.toLocaleString()}`).join(", ");
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <svg className="line" viewBox="-4 0 308 100" role="img" aria-label={text}>
        <polyline points={points.join(" ")} />
      </svg>
      <p className="ends">
        {[data[0], data.at(-1)].map(
          (point, at) => point && <span key={at}>{`${point.label}: ${point.value.toLocaleString()}`}</span>,
        )}
      </p>
    </figure>
  );
}
