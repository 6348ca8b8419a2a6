import { driverOf } from '../../inventory/nodes/gpu-labels.ts';
import type { Node } from '../../kube/types.ts';
import { findTemplate, type TemplateSource } from '../../caches/templates.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import type { InstanceTemplate } from '../../resources/instance-template.ts';
import type { InstanceRecord } from '../schemas/instance.ts';
import { etagOf } from '../send.ts';
import { toInstanceRecord } from './instance-record.ts';

export interface PresenterDeps {
  nodes: ReadStore<Node>;
  templates: TemplateSource;
  defaultImage: string;
}

interface Related {
  node: Node | undefined;
  template: InstanceTemplate | undefined;
}

interface Presented extends Related {
  json: string;
  etag: string;
}

/** Turns instances into records. Objects of the watch cache never change, so their JSON is kept as long as they are. */
export class InstancePresenter {
  readonly #deps: PresenterDeps;
  readonly #presented = new WeakMap<GpuInstance, Presented>();

  constructor(deps: PresenterDeps) {
    this.#deps = deps;
  }

  record(instance: GpuInstance): InstanceRecord {
    return this.#toRecord(instance, this.#relatedOf(instance));
  }

  json(instance: GpuInstance): string {
    return this.present(instance).json;
  }

  /** The record as JSON with its entity tag, made once per version of the instance, its node and its template. */
  present(instance: GpuInstance): { json: string; etag: string } {
    const related = this.#relatedOf(instance);
    const before = this.#presented.get(instance);
    if (before?.node === related.node && before?.template === related.template && before) return before;
    const json = JSON.stringify(this.#toRecord(instance, related));
    const presented = { json, etag: etagOf(json), ...related };
    this.#presented.set(instance, presented);
    return presented;
  }

  #relatedOf({ metadata, spec, status }: GpuInstance): Related {
    const { nodes, templates } = this.#deps;
    const name = status?.claim?.node;
    return {
      node: name === undefined ? undefined : nodes.get(name),
      // A rented instance has what it needs of its template in its status.
      template: status?.template ? undefined : findTemplate(templates, metadata.namespace ?? '', spec),
    };
  }

  #toRecord(instance: GpuInstance, { node, template }: Related): InstanceRecord {
    const driver = node && driverOf(node);
    return toInstanceRecord(instance, { driver, template: template?.spec, defaultImage: this.#deps.defaultImage });
  }
}
