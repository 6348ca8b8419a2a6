import { refOf } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Reserved } from '../../resources/instances/line.ts';
import { besideReserved, type ClaimHolding, type PodHolding, takenOn } from '../holdings.ts';
import { TwoKeyMap } from '../two-key-map.ts';
import type { NodeFacts, NodeView } from './node-view.ts';
import { type NodeFailure, quarantinedUntil } from './quarantine.ts';
import { areSwitched } from './switched-gpus.ts';

/**
 * What is taken on each node, summed up at the first look after a change. `onChange` is called after each change, with the node if
 * it is one.
 */
export class NodeViews {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #onChange: (node?: string) => void;
  readonly #facts = new Map<string, NodeFacts>();
  readonly #views = new Map<string, NodeView>();
  readonly #pods = new TwoKeyMap<PodHolding>();
  readonly #claims = new TwoKeyMap<ClaimHolding>();
  readonly #reserved = new TwoKeyMap<Reserved>();
  readonly #offered = new Map<string, NodeView>();
  readonly #failures = new TwoKeyMap<NodeFailure>();
  /** Keys of the instances that want GPUs, by namespace. */
  readonly #tenants = new Map<string, Set<string>>();
  /** When the first quarantine ends, milliseconds since the epoch: until then the views are valid. */
  #staleAt = Number.POSITIVE_INFINITY;

  constructor(clock: Pick<Clock, 'now'>, onChange: (node?: string) => void) {
    this.#clock = clock;
    this.#onChange = onChange;
  }

  /** The node without the places that are reserved for waiting instances. */
  offeredOf(node: string): NodeView | undefined {
    const known = this.#offered.get(node);
    if (known !== undefined) return known;
    const view = this.viewOf(node);
    const reserved = view === undefined ? [] : [...this.#reserved.of(node)];
    if (view === undefined || reserved.length === 0) return view;
    const offered = besideReserved(view, reserved, this.claimsOn(node));
    this.#offered.set(node, offered);
    return offered;
  }

  viewOf(node: string): NodeView | undefined {
    const known = this.#views.get(node);
    if (known !== undefined) return known;
    const facts = this.#facts.get(node);
    if (facts === undefined) return undefined;
    const until = quarantinedUntil(this.#failures.of(node), this.#clock.now(), (namespace) =>
      [...this.#tenants.keys()].every((tenant) => tenant === namespace),
    );
    if (until !== undefined) this.#staleAt = Math.min(this.#staleAt, until);
    const claims = this.claimsOn(node);
    const used = takenOn(facts, this.#pods.of(node), claims);
    const switched = areSwitched(
      facts,
      claims.map(({ claim }) => claim),
    );
    const view = { facts, quarantined: until !== undefined, switched, used };
    this.#views.set(node, view);
    return view;
  }

  facts(): IterableIterator<NodeFacts> {
    return this.#facts.values();
  }

  factsOf(node: string): NodeFacts | undefined {
    return this.#facts.get(node);
  }

  claimsOn(node: string): ClaimHolding[] {
    return [...this.#claims.of(node)];
  }

  get staleAt(): number {
    return this.#staleAt;
  }

  /** Drops the views when one of them is stale, and returns whether it did. */
  expire(): boolean {
    if (this.#clock.now() < this.#staleAt) return false;
    this.#staleAt = Number.POSITIVE_INFINITY;
    this.#forgetAll();
    return true;
  }

  setFacts(node: string, facts: NodeFacts | undefined): void {
    if (facts === undefined) this.#facts.delete(node);
    else this.#facts.set(node, facts);
    this.#touch(node);
  }

  setPod(key: string, holding: PodHolding | undefined): void {
    this.#setHolding(this.#pods, key, holding, ({ node }) => node);
  }

  setClaim(key: string, holding: ClaimHolding | undefined): void {
    this.#setHolding(this.#claims, key, holding, ({ claim }) => claim.node);
  }

  setReserved(key: string, place: Reserved | undefined): void {
    this.#setHolding(this.#reserved, key, place, ({ node }) => node);
  }

  setFailures(key: string, failures: readonly NodeFailure[]): void {
    const nodes = new Set([...this.#failures.nodesOf(key), ...failures.map(({ node }) => node)]);
    this.#failures.replace(key, new Map(failures.map((failure) => [failure.node, failure])));
    for (const node of nodes) this.#touch(node);
  }

  setWanting(key: string, wants: boolean): void {
    const { namespace = '' } = refOf(key);
    const wanting = this.#tenants.get(namespace) ?? new Set();
    const before = this.#tenants.size;
    if (wants) wanting.add(key);
    else wanting.delete(key);
    if (wanting.size > 0) this.#tenants.set(namespace, wanting);
    else this.#tenants.delete(namespace);
    const after = this.#tenants.size;
    // A quarantine depends on whether a tenant is alone.
    if (before === after || Math.min(before, after) > 1) return;
    this.#forgetAll();
    this.#onChange();
  }

  #setHolding<T>(holdings: TwoKeyMap<T>, key: string, holding: T | undefined, nodeOf: (holding: T) => string): void {
    const before = holdings.get(key);
    if (before === undefined && holding === undefined) return;
    const node = holding && nodeOf(holding);
    holdings.set(key, node, holding);
    if (before !== undefined) this.#touch(nodeOf(before));
    if (node !== undefined && (before === undefined || node !== nodeOf(before))) this.#touch(node);
  }

  #forgetAll(): void {
    this.#views.clear();
    this.#offered.clear();
  }

  #touch(node: string): void {
    this.#views.delete(node);
    this.#offered.delete(node);
    this.#onChange(node);
  }
}
