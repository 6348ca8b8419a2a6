import { useEffect, useState } from 'preact/hooks';
import type { FoundOffer, InstanceRecord, List } from '../../../wire/records.ts';
import { callApi } from '../calls/call.ts';
import { Field } from '../parts/form.tsx';
import { useRead } from '../parts/use-read.ts';
import { attempt, tenant } from '../state.ts';
import { chooserOf } from './images.ts';

/** Which images a node with a free place of the offer has, as far as the server has said. */
function useOnNode(images: readonly string[], offer: FoundOffer): ReadonlyMap<string, boolean> {
  const [known, setKnown] = useState<ReadonlyMap<string, boolean>>(new Map());
  useEffect(() => {
    const { id, gpu_name: gpu, gpu_count: count, pool } = offer;
    for (const image of images) {
      if (known.has(image)) continue;
      const body = { image, gpu_name: gpu, gpu_count: count, pool };
      // Where an image is, is only a help: the form works without it.
      void attempt(
        async () => {
          const { data } = await callApi<List<FoundOffer>>(tenant.value, 'POST', '/offers/search', body);
          const found = data.find((one) => one.id === id);
          if (found !== undefined) setKnown((before) => new Map(before).set(image, found.image_cached));
        },
        () => undefined,
      );
    }
  }, [images.join(' '), offer.id]);
  return known;
}

function helpOf(isThere: boolean | undefined, isDefault: boolean, hasTemplate: boolean): string {
  if (isDefault && hasTemplate) return 'Empty: that of the template.';
  const where =
    isThere === undefined ? '' : isThere ? 'It is on a node of this offer.' : 'The first start downloads it.';
  return isDefault ? `Empty: the default image. ${where}` : where;
}

/** The image: one that people start from, one of the project's own, or any other by its name. */
export function ImageField(props: {
  offer: FoundOffer;
  hasTemplate: boolean;
  field: { id: string; value: string; why: string; onInput: (value: string) => void };
}) {
  const { offer, hasTemplate, field } = props;
  const { value: list } = useRead<List<InstanceRecord>>('/instances');
  const choices = chooserOf(list?.data ?? []);
  const images = choices.map(({ image }) => image);
  const asked = images.includes(field.value) ? images : [...images, field.value];
  const known = useOnNode(asked, offer);
  return (
    <>
      <Field label="Image" help={helpOf(known.get(field.value), field.value === '', hasTemplate)} {...field} />
      <div class="images" role="group" aria-label="Common images">
        {choices.map(({ name, image }) => (
          <button
            type="button"
            key={image}
            title={image}
            aria-pressed={field.value === image}
            onClick={() => field.onInput(image)}
          >
            {name}
            {known.get(image) && <span class="soft block">on this node</span>}
          </button>
        ))}
      </div>
    </>
  );
}
