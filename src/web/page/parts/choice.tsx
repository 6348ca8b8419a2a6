/** One of several, as a row of buttons. */
export function Choice<T extends string>(props: {
  legend: string;
  name: string;
  value: T;
  options: readonly { value: T; title: string }[];
  onChange: (value: T) => void;
}) {
  const { legend, name, value, options, onChange } = props;
  return (
    <fieldset class="segments">
      <legend>{legend}</legend>
      <div>
        {options.map((option) => (
          <label key={option.value}>
            <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
            <span>{option.title}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
