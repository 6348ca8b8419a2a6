// What this program reads of the answers. A test compares it with the schemas of the server.

export interface List<T> {
  data: readonly T[];
}

export interface Offer {
  id: number;
  gpu_name: string;
  gpu_count: number;
  gpu_memory_mb: number;
  isolation: 'whole' | 'mig' | 'time_sliced';
  mig_profile: string | null;
  available: number;
  simulated: boolean;
  price_per_hour: { on_demand: string; interruptible: string; currency: string };
  cpu_cores: number;
  memory_mb: number;
  disk_gb_max: number;
  image_cached: boolean;
  pool: string;
  expected_start_seconds?: number | undefined;
}

export interface Instance {
  id: string;
  name: string | null;
  label: string | null;
  type: number;
  state: string;
  desired_state: string;
  reason: string;
  message: string;
  stages: Partial<Record<string, string>>;
  gpu_name: string | null;
  gpu_count: number;
  node: string | null;
  simulated: boolean;
  template_image: string;
  runtype: string;
  disk_gb: number | null;
  price_per_hour: string | null;
  currency: string | null;
  usage: { gpu_seconds: number; cost: string; currency: string } | null;
  ssh: { host: string; port: number; user: string; command: string; known_hosts: string | null } | null;
  ports: readonly { container_port: number; protocol: string; name: string | null }[];
  env_names: readonly string[];
  max_duration: string | null;
  idle_timeout: string | null;
  expires_at: string | null;
  place_in_line: number | null;
  disk_policy: string;
  created_at: string;
  warnings: readonly string[];
}

export interface SshKey {
  id: number;
  name: string;
  fingerprint: string;
  type: string;
  created_at: string;
}

export interface Template {
  id: number;
  name: string;
  image: string | null;
  runtype: string | null;
  disk_gb: number | null;
  hash_id: string;
  shared: boolean;
  created_at: string;
}

export interface Registry {
  name: string;
  server: string;
  username: string;
  created_at: string;
}

export interface Webhook {
  id: string;
  url: string;
  events: readonly string[] | null;
  name: string;
  /** Null before the notifier has seen the webhook. */
  delivering: { status: boolean; reason: string; message: string } | null;
  last_delivered_at: string | null;
  failed_since: string | null;
  dropped: number;
  created_at: string;
}

export interface Limits {
  policies: readonly string[];
  instances: Used;
  ssh_keys: Used;
  templates: Used;
  api_keys: Used;
  registries: Used;
  webhooks: Used;
  gpus_used: number;
  gpus: readonly { pool: string | null; gpu_name: string | null; used: number; limit: number }[];
  /** Servers of earlier releases have no budgets. */
  budget?: Budget | null;
  key_budget?: Budget | null;
}

export interface Budget {
  renews_at: string;
  lines: readonly { unit: string; limit: string; spent: string; left: string }[];
}

/** What was used, of GPUs and of models. */
export interface UsedAmount {
  gpu_seconds: number;
  cost: string;
  currency: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
}

export interface Usage {
  from: string;
  to: string;
  group: string;
  items: readonly (UsedAmount & { group: string; product: string | null; open: boolean })[];
  totals: readonly UsedAmount[];
}

export interface Used {
  used: number;
  limit: number;
}

export interface LogLine {
  id: string;
  at: string;
  text: string;
}

export interface HistoryEvent {
  at: string;
  last_at: string | null;
  type: string;
  reason: string;
  message: string;
  count: number;
}
