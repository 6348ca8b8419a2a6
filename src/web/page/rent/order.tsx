import type { CreateInstance, FoundOffer } from '../../../wire/records.ts';

/** What a person filled in. */
export interface Order {
  type: 0 | 1;
  name: string;
  image: string;
  /** The number of a template; empty without one. */
  template: string;
  /** Empty: as the template says, and a login without one. */
  runtype: '' | 'ssh' | 'jupyter' | 'args';
  disk: string;
  longest: string;
  script: string;
  keys: number[];
  waits: boolean;
}

/** The body of POST /instances. What was left empty is left out; the API has the words for what is wrong. */
export function bodyOf(order: Order, { id }: FoundOffer): CreateInstance {
  const { type, name, template, image, runtype, disk, longest, script, keys, waits } = order;
  return {
    ask_id: id,
    type,
    on_no_capacity: waits ? 'queue' : 'fail',
    ...(name !== '' && { name }),
    ...(template !== '' && { template_id: Number(template) }),
    ...(runtype !== '' && { runtype }),
    ...(image !== '' && { template_image: image }),
    ...(disk !== '' && { disk_gb: Number(disk) }),
    ...(longest !== '' && { max_duration: longest }),
    ...(script !== '' && { on_start: script }),
    ...(keys.length > 0 && { ssh_key_ids: keys }),
  };
}
