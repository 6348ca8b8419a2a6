import type { Illness } from '../nodes/driver.ts';
import type { LayoutName } from '../nodes/layout.ts';

/** Which instance an act is about: the one that the act with this number rented. */
type Of = { of: number };

/** What a person edits of an instance. */
export const FIELDS = [
  'displayName',
  'image',
  'maxPrice',
  'maxDuration',
  'idleTimeout',
  'onExpiry',
  'diskPolicy',
] as const;

/** What somebody does. Plain data: a list of them is replayed, and made shorter, as it stands. */
export type Act = { id: number; at: number } & (
  | {
      do: 'rent';
      tenant: number;
      way: 'http' | 'kubectl';
      gpus: number;
      product: number;
      /** What the name of the product ends with that is a part of a GPU. */
      part?: string;
      interruptible: boolean;
      queue: boolean;
      hasKey: boolean;
      runSeconds: number;
      maxDuration: string | undefined;
      idleTimeout: string | undefined;
      onExpiry: 'Stop' | 'Delete';
      image: string;
      byOffer: boolean;
      leavesAfterMs: number | undefined;
      diskPolicy: 'Delete' | 'Retain';
      onGPUFailure: 'Restart' | 'Keep';
      /** Number of the API key of its tenant; undefined: one that is always there. */
      key?: number;
    }
  | ({ do: 'repeat' | 'again' } & Of)
  | ({ do: 'stop' | 'start' } & Of)
  | ({ do: 'ask'; isOld: boolean } & Of)
  | ({ do: 'edit'; field: (typeof FIELDS)[number] } & Of)
  | ({ do: 'delete'; how: 'Background' | 'Foreground' | 'Orphan' } & Of)
  | ({ do: 'deletePod'; byForce: boolean } & Of)
  | ({ do: 'evict' } & Of)
  | ({ do: 'clearAway'; isHeld: boolean } & Of)
  | ({ do: 'strip'; what: 'labels' | 'owner' } & Of)
  | ({ do: 'forge'; what: 'labels' | 'owner' } & Of)
  | ({ do: 'hold'; what: 'instance' | 'pod'; forMs: number } & Of)
  | ({ do: 'exit'; code: number } & Of)
  | ({ do: 'session'; forMs: number } & Of)
  | { do: 'deleteNamespace'; tenant: number }
  | { do: 'drain' | 'cordon'; node: number; forMs: number }
  | { do: 'lose'; node: number; how: 'silent' | 'off'; forMs: number; deletesNode: boolean; forcesPods: boolean }
  | { do: 'sicken'; node: number; gpu: number; forMs: number }
  | { do: 'sickenDevice'; node: number; gpu: number; illness: Illness; forMs: number }
  | { do: 'taintDevice'; node: number; gpu: number; forMs: number }
  | { do: 'restartDriver'; node: number }
  | { do: 'hideSlices'; node: number; forMs: number }
  | { do: 'relabel'; node: number; driver: string }
  | { do: 'switch'; node: number; to: LayoutName; forMs: number }
  | { do: 'split'; pool: number; isLabelFirst: boolean; gapMs: number; forMs: number }
  | { do: 'resize'; pool: number; sizes: number[]; forMs: number }
  | { do: 'ceil'; tenant: number; gpus: number | undefined; diskGb: number | undefined; isBeyond?: boolean }
  | { do: 'quota'; tenant: number; gpus?: number; pods?: number; forMs: number }
  | { do: 'reprice'; pool: number; price: string; interruptible?: string }
  | { do: 'unpool'; forMs: number }
  | { do: 'kill' | 'stopLeader' | 'killFront' }
  | { do: 'killAtWrite'; arrivesAfterMs: number; skips?: number }
  | { do: 'stall'; forMs: number }
  | { do: 'scale' }
  | { do: 'unready'; node: number; forMs: number; taintedAfterMs: number }
  | { do: 'setClock'; aheadMs: number; forMs: number }
  | { do: 'freeze'; forMs: number; atWrite: boolean; skips?: number; breaks?: boolean; grantOf?: number }
  | {
      do: 'storm';
      kinds: ('refused' | 'failed' | 'lost' | 'slow' | 'lag' | 'blind' | 'away')[];
      forMs: number;
      restarts?: boolean;
    }
  | { do: 'watches'; how: 'cut' | 'end' | 'expire'; compacts: boolean }
  | { do: 'makeKey' | 'budgetKey'; tenant: number; key: number; usd: string | undefined }
  | { do: 'revokeKey' | 'deleteKey'; tenant: number; key: number }
  | { do: 'budget'; tenant: number; usd: string | undefined }
  | ({ do: 'correct'; type: 'Credit' | 'Charge'; usd: string } & Of)
  | ({ do: 'deleteRecords' } & Of)
  | { do: 'export'; all: boolean; killedAfterMs: number | undefined }
  | { do: 'upgrade'; pauseMs: number }
);

/** One line of a picture. */
export function textOf({ id, at: _at, do: what, ...rest }: Act): string {
  const facts = Object.entries(rest).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${String(value)}`],
  );
  return `#${id} ${what} ${facts.join(' ')}`;
}
