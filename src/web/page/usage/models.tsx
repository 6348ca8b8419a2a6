import type { UsageAnswer } from '../../../wire/records.ts';
import { Table } from '../parts/controls.tsx';
import { amountText, costText } from './words.ts';

const COLUMNS = ['Model', 'Calls', 'Input', 'Cached', 'Output', 'Cost'] as const;

/** Calls and tokens of models, those that cost most first. */
export function ModelTable({ items }: { items: UsageAnswer['items'] }) {
  return (
    <Table title="Models" columns={COLUMNS}>
      {items
        .toSorted((a, b) => Number(b.cost) - Number(a.cost))
        .map((item) => (
          <tr key={`${item.group} ${item.currency}`}>
            <th scope="row">{item.group.slice('model/'.length)}</th>
            {[item.calls, item.input_tokens, item.cached_input_tokens, item.output_tokens].map((count, index) => (
              <td key={COLUMNS[index + 1]} data-label={COLUMNS[index + 1]} class="number">
                {amountText(count)}
              </td>
            ))}
            <td data-label="Cost" class="number">
              {costText(item.cost, item.currency)}
            </td>
          </tr>
        ))}
    </Table>
  );
}
