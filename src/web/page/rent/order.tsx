import type { CreateInstance } from '../../../http/schemas/instance.ts';
import type { FoundOffer } from '../../../http/schemas/offer.ts';

/** What a person filled in. */
export interface Order {
  type: 0 | 1;
  name: string;
  image: string;
  runtype: 'ssh' | 'jupyter' | 'args';
  disk: string;
  longest: string;
  script: string;
  keys: number[];
  waits: boolean;
}

/** The body of POST /instances. What was left empty is left out; the API has the words for what is wrong. */
export function bodyOf(order: Order, { id }: FoundOffer): CreateInstance {
  const { type, name, image, runtype, disk, longest, script, keys, waits } = order;
  return {
    ask_id: id,
    type,
    runtype,
    on_no_capacity: waits ? 'queue' : 'fail',
    ...(name !== '' && { name }),
    ...(image !== '' && { template_image: image }),
    ...(disk !== '' && { disk_gb: Number(disk) }),
    ...(longest !== '' && { max_duration: longest }),
    ...(script !== '' && { on_start: script }),
    ...(keys.length > 0 && { ssh_key_ids: keys }),
  };
}

/** A field with what the API expects of it, when it refused the value. */
export function Field(props: {
  id: string;
  label: string;
  value: string;
  why: string;
  help?: string;
  onInput: (value: string) => void;
}) {
  const { id, label, value, why, help, onInput } = props;
  return (
    <div>
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={why !== ''}
        aria-describedby={`${id}-help`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <p class={why === '' ? 'help' : 'help wrong'} id={`${id}-help`}>
        {why === '' ? help : why}
      </p>
    </div>
  );
}
