import { driverOf } from '../../inventory/nodes/gpu-labels.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Node } from '../../kube/types.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import type { InstanceTemplate } from '../../resources/instance-template.ts';
import type { TemplateFinder } from '../instances/templates.ts';
import type { InstanceRecord } from '../schemas/instance.ts';
import { etagOf } from '../send.ts';
import { toInstanceRecord } from './instance-record.ts';

export interface PresenterDeps {
  nodes: ReadStore<Node>;
  templates: TemplateFinder;
  defaultImage: string;
}

export interface InstancePresenter {
  record(instance: GpuInstance): InstanceRecord;
  /** The record as JSON with its entity tag; made once per version of the instance and of what it stands on. */
  present(instance: GpuInstance): { json: string; etag: string };
  json(instance: GpuInstance): string;
}

interface Presented {
  json: string;
  etag: string;
  node: Node | undefined;
  template: InstanceTemplate | undefined;
}

/** Turns instances into records. Objects of the watch cache never change, so their JSON is kept as long as they are. */
export function createInstancePresenter(deps: PresenterDeps): InstancePresenter {
  const { nodes, templates, defaultImage } = deps;
  const presented = new WeakMap<GpuInstance, Presented>();

  function around(instance: GpuInstance) {
    const name = instance.status?.claim?.node;
    return { node: name === undefined ? undefined : nodes.get(name), template: templates.ofInstance(instance) };
  }

  function toRecord(instance: GpuInstance, { node, template }: ReturnType<typeof around>): InstanceRecord {
    const driver = node && driverOf(node);
    return toInstanceRecord(instance, { driver, template: template?.spec, defaultImage });
  }

  function present(instance: GpuInstance): Presented {
    const now = around(instance);
    const before = presented.get(instance);
    if (before?.node === now.node && before?.template === now.template && before) return before;
    const json = JSON.stringify(toRecord(instance, now));
    const made = { json, etag: etagOf(json), ...now };
    presented.set(instance, made);
    return made;
  }

  return {
    record: (instance) => toRecord(instance, around(instance)),
    present,
    json: (instance) => present(instance).json,
  };
}
