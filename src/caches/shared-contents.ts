import { sameJson } from '../lib/json.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { TemplateContent } from '../resources/instance-template.ts';

/** Instances that were rented with the same content of a template keep one copy of it in the memory of a process. */
export class SharedContents {
  /** By the hash of the content. What no instance has any more goes by itself. */
  readonly #contents = new Map<string, WeakRef<TemplateContent>>();
  readonly #gone = new FinalizationRegistry<string>((hashId) => {
    if (this.#contents.get(hashId)?.deref() === undefined) this.#contents.delete(hashId);
  });

  get size(): number {
    return this.#contents.size;
  }

  /** The instance with the copy that others have, if theirs says the same. */
  share(instance: GpuInstance): GpuInstance {
    const { template } = instance.status ?? {};
    if (template === undefined) return instance;
    const known = this.#contents.get(template.hashId)?.deref();
    if (known === undefined) {
      this.#contents.set(template.hashId, new WeakRef(template.spec));
      this.#gone.register(template.spec, template.hashId);
    }
    if (known === undefined || !sameJson(known, template.spec)) return instance;
    return { ...instance, status: { ...instance.status, template: { ...template, spec: known } } };
  }
}
