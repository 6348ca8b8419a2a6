import type { NodeView } from './nodes/node-view.ts';
import { placesOn } from './nodes/node-view.ts';
import type { OfferClass } from './offers.ts';

type Member = OfferClass['members'][number];

/** The members of one class that have a free place. */
interface Free {
  readonly members: Map<string, { member: Member; places: number }>;
  /** Number of instances of this class that would fit now. */
  places: number;
}

interface FreePlacesOptions {
  /** The same map until the classes change. */
  classes: () => ReadonlyMap<number, OfferClass>;
  viewOf: (node: string) => NodeView | undefined;
}

/** Where each class has free places, kept up node by node: most requests meet a full cluster, and need no look at it. */
export class FreePlaces {
  readonly #options: FreePlacesOptions;
  readonly #free = new Map<OfferClass, Free>();
  /** The classes that each node is a member of. */
  readonly #ofNode = new Map<string, { offerClass: OfferClass; member: Member }[]>();
  readonly #changed = new Set<string>();
  #classes: ReadonlyMap<number, OfferClass> | undefined;

  constructor(options: FreePlacesOptions) {
    this.#options = options;
  }

  /** What is free on a node may have changed; on every node without one. */
  touch(node?: string): void {
    if (node === undefined) this.#classes = undefined;
    else this.#changed.add(node);
  }

  /** The members of a class that have a free place, in any order. A class that is not offered is looked at anew. */
  *members(offerClass: OfferClass): Generator<Member> {
    const free = this.#of(offerClass);
    for (const { member } of free?.members.values() ?? []) yield member;
    if (free !== undefined) return;
    for (const member of offerClass.members) if (this.#placesOn(offerClass, member) > 0) yield member;
  }

  /** How many instances of a class would fit now. */
  places(offerClass: OfferClass): number {
    const free = this.#of(offerClass);
    if (free !== undefined) return free.places;
    return offerClass.members.reduce((sum, member) => sum + this.#placesOn(offerClass, member), 0);
  }

  #placesOn({ gpuCount }: OfferClass, { node, resource }: Member): number {
    const view = this.#options.viewOf(node);
    return view === undefined ? 0 : placesOn(view, { resource, count: gpuCount });
  }

  #of(offerClass: OfferClass): Free | undefined {
    const classes = this.#options.classes();
    if (classes !== this.#classes) this.#rebuild(classes);
    for (const node of this.#changed) this.#count(node);
    this.#changed.clear();
    return this.#free.get(offerClass);
  }

  #rebuild(classes: ReadonlyMap<number, OfferClass>): void {
    this.#classes = classes;
    this.#free.clear();
    this.#ofNode.clear();
    this.#changed.clear();
    for (const offerClass of classes.values()) {
      this.#free.set(offerClass, { members: new Map(), places: 0 });
      for (const member of offerClass.members) {
        const known = this.#ofNode.get(member.node);
        if (known) known.push({ offerClass, member });
        else this.#ofNode.set(member.node, [{ offerClass, member }]);
      }
    }
    for (const node of this.#ofNode.keys()) this.#count(node);
  }

  #count(node: string): void {
    for (const { offerClass, member } of this.#ofNode.get(node) ?? []) {
      const places = this.#placesOn(offerClass, member);
      const free = this.#free.get(offerClass);
      if (free === undefined) continue;
      free.places += places - (free.members.get(node)?.places ?? 0);
      if (places > 0) free.members.set(node, { member, places });
      else free.members.delete(node);
    }
  }
}
