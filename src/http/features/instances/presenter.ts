import { findTemplate, type TemplateSource } from '../../../caches/templates.ts';
import { makerOfResource } from '../../../inventory/makers/makers.ts';
import { driverOf } from '../../../inventory/nodes/gpu-labels.ts';
import type { Node } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { InstanceTemplate } from '../../../resources/instance-template.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { etagOf } from '../../../lib/etag.ts';
import { toInstanceRecord } from './record.ts';
import type { InstanceRecord } from './schema.ts';

export interface PresenterDeps {
  /** An answer of the API server as the cache would show it. */
  complete: (instance: GpuInstance) => GpuInstance;
  nodes: ReadStore<Node>;
  templates: TemplateSource;
  defaultImage: string;
  /** The place of an instance in the line of those who wait. */
  placeOf: (instance: GpuInstance) => number | undefined;
  /** What is nearly used up of what an instance draws on, in words: the same array until that changes. */
  nearLimits: (instance: GpuInstance) => readonly string[];
}

interface Related {
  node: Node | undefined;
  template: InstanceTemplate | undefined;
  place: number | undefined;
  nearLimits: readonly string[];
}

interface Presented extends Related {
  json: string;
  etag: string;
}

function isSame(a: Related, b: Related): boolean {
  return a.node === b.node && a.template === b.template && a.place === b.place && a.nearLimits === b.nearLimits;
}

function imagesOf({ status }: Node): ReadonlySet<string> {
  return new Set(status?.images?.flatMap(({ names }) => names ?? []));
}

/** Turns instances into records. Objects of the watch cache never change, so their JSON is kept as long as they are. */
export class InstancePresenter {
  readonly #deps: PresenterDeps;
  readonly #presented = new WeakMap<GpuInstance, Presented>();

  constructor(deps: PresenterDeps) {
    this.#deps = deps;
  }

  record(answer: GpuInstance): InstanceRecord {
    const instance = this.#deps.complete(answer);
    return this.#toRecord(instance, this.#relatedOf(instance));
  }

  json(instance: GpuInstance): string {
    return this.present(instance).json;
  }

  /** The record as JSON with its entity tag, made once per version of the instance and of what it depends on. */
  present(answer: GpuInstance): { json: string; etag: string } {
    const instance = this.#deps.complete(answer);
    const related = this.#relatedOf(instance);
    const before = this.#presented.get(instance);
    if (before !== undefined && isSame(before, related)) return before;
    const json = JSON.stringify(this.#toRecord(instance, related));
    const presented = { json, etag: etagOf(json), ...related };
    this.#presented.set(instance, presented);
    return presented;
  }

  #relatedOf(instance: GpuInstance): Related {
    const { nodes, templates, placeOf, nearLimits } = this.#deps;
    const { metadata, spec, status } = instance;
    const { namespace = '' } = metadata;
    const name = status?.claim?.node;
    return {
      node: name === undefined ? undefined : nodes.get(name),
      // A rented instance has what it needs of its template in its status.
      template: status?.template ? undefined : findTemplate(templates, namespace, spec),
      place: placeOf(instance),
      nearLimits: nearLimits(instance),
    };
  }

  #toRecord(instance: GpuInstance, { node, template, ...rest }: Related): InstanceRecord {
    return toInstanceRecord(instance, {
      driver: node && driverOf(node, makerOfResource(instance.status?.claim?.resourceName ?? '')),
      images: node && imagesOf(node),
      template: template?.spec,
      defaultImage: this.#deps.defaultImage,
      ...rest,
    });
  }
}
