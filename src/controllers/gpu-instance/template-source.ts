import { sharingChanged, wantsSharing } from '../../caches/templates.ts';
import { keyOf } from '../../kube/types.ts';
import type { StoreChange } from '../../kube/watch/store.ts';
import type { InstanceTemplate } from '../../resources/instance-template.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import { cameOrWent } from '../change-source.ts';
import type { ControllerStores } from '../stores.ts';

/** The reasons of instances that cannot be rented because of their template. */
const WITHOUT_TEMPLATE = ['TemplateNotFound', 'TemplateTooLarge'];

/** Whether the content of a template, or who may see it, may have changed: its status changes too. */
function isEdited({ before, after }: StoreChange<InstanceTemplate>): boolean {
  if (before === undefined || after === undefined || cameOrWent({ key: '', before, after })) return true;
  return before.metadata.generation !== after.metadata.generation || wantsSharing(before) !== wantsSharing(after);
}

/**
 * Instances that wait for a template, and those that were rented with one that changes: these only have to show it, and
 * come after all that is more urgent.
 */
export function templateSource({ instances, templates, namespaces }: ControllerStores): Source {
  const wakeWaiting = (add: AddKey): void => {
    for (const reason of WITHOUT_TEMPLATE) for (const instance of instances.by('reason', reason)) add(keyOf(instance));
  };
  const wakeRented = (add: AddKey, uid = ''): void => {
    for (const instance of instances.by('template', uid)) add(keyOf(instance), 'low');
  };
  return {
    synced: Promise.all([templates.synced, namespaces.synced]).then(() => undefined),
    start(add) {
      const stops = [
        templates.onChange((change) => {
          if (!isEdited(change)) return;
          wakeWaiting(add);
          wakeRented(add, (change.after ?? change.before)?.metadata.uid);
        }),
        namespaces.onChange((change) => {
          if (!sharingChanged(change)) return;
          wakeWaiting(add);
          for (const { metadata } of templates.by('namespace', change.key)) wakeRented(add, metadata.uid);
        }),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}
