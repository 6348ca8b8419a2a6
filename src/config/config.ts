import { z } from 'zod';
import { type IpNetwork, parseNetwork } from '../lib/ip-network.ts';
import { type GpuPoolSpec, gpuPoolSpecSchema } from '../resources/gpu-pool.ts';
import { IMAGE_PATTERN } from '../resources/image.ts';
import { type OidcConfig, oidcEnvironment, readOidc } from './oidc.ts';
import { readTracing, type TracingConfig, tracingEnvironment } from './tracing.ts';

/** The environment of the process cannot be used. The message names every wrong variable and the value it takes. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

export interface Address {
  host: string;
  port: number;
}

/** The value of a JSON text; undefined for other texts. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const address = z.string().transform((text, context): Address => {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65535) {
    context.addIssue({ code: 'custom', message: 'expected host:port, for example 0.0.0.0:8080' });
    return z.NEVER;
  }
  return { host: match[1] ?? (match[2] === '' ? '0.0.0.0' : (match[2] ?? '0.0.0.0')), port };
});

const days = z.coerce.number().int().min(0).max(3650);
const port = z.coerce.number().int().min(1).max(65535);
const image = z.string().min(1).max(512).regex(IMAGE_PATTERN, 'expected a container image reference');

const origin = z.url({ protocol: /^https?$/ }).transform((text, context): URL => {
  const url = new URL(text);
  if (url.href === `${url.origin}/`) return url;
  context.addIssue({ code: 'custom', message: 'expected only scheme and host, for example https://apps.example.com' });
  return z.NEVER;
});

const namespaces = z.string().transform((text, context): string[] => {
  const names = text.split(',').map((name) => name.trim());
  if (names.every((name) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))) return names;
  context.addIssue({ code: 'custom', message: 'expected names of namespaces, separated by commas' });
  return z.NEVER;
});

const names = z.string().transform((text, context): string[] => {
  const list = text.split(',').map((name) => name.trim());
  if (list.every((name) => /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))) return list;
  context.addIssue({ code: 'custom', message: 'expected names of Secrets, separated by commas' });
  return z.NEVER;
});

const architectures = z.string().transform((text, context): ReadonlySet<string> => {
  const list = text.split(',').map((name) => name.trim());
  if (list.every((name) => /^[a-z0-9]{2,16}$/.test(name))) return new Set(list);
  context.addIssue({ code: 'custom', message: 'expected architectures as nodes name theirs, for example amd64,arm64' });
  return z.NEVER;
});

const networks = z.string().transform((text, context): IpNetwork[] =>
  text.split(',').flatMap((one) => {
    const network = parseNetwork(one.trim());
    if (network !== undefined) return [network];
    context.addIssue({ code: 'custom', message: 'expected networks, separated by commas, for example 10.20.0.0/16' });
    return [];
  }),
);

const poolSpec = z.string().transform((text, context): GpuPoolSpec => {
  const parsed = gpuPoolSpecSchema.strict().safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues) context.addIssue({ code: 'custom', path, message });
  return z.NEVER;
});

const trustProxy = z.string().transform((text, context): boolean | number | string => {
  if (text === 'false') return false;
  if (/^\d+$/.test(text)) return Number(text);
  if (/^[0-9a-fA-F.:/, ]+$|^(loopback|linklocal|uniquelocal)(, ?(loopback|linklocal|uniquelocal))*$/.test(text))
    return text;
  context.addIssue({ code: 'custom', message: 'expected false, a number of proxies, or their addresses or subnets' });
  return z.NEVER;
});

/** Every variable that a server role reads. `docs/run/environment.md` lists them. */
export const environment = z.object({
  KUBECONFIG: z.string().optional(),
  BERTH_NAMESPACE: z.string().min(1).max(63).default('berth-system'),
  BERTH_HTTP_ADDR: address.prefault('0.0.0.0:8080'),
  BERTH_INGRESS_ADDR: address.optional(),
  BERTH_METRICS_ADDR: address.prefault('0.0.0.0:9090'),
  BERTH_METRICS_TLS: z.string().optional(),
  BERTH_SSH_ADDR: address.prefault('0.0.0.0:2222'),
  BERTH_SSH_PUBLIC_HOST: z.string().min(1).max(253).optional(),
  BERTH_SSH_PUBLIC_PORT: port.optional(),
  BERTH_DEFAULT_IMAGE: image.default('debian:12'),
  BERTH_TOOLS_IMAGE: image.default('ghcr.io/berth-dev/berth:0.1.0'),
  BERTH_TOOLS_ARCHITECTURES: architectures.optional(),
  BERTH_IMAGE_PULL_SECRETS: names.optional(),
  BERTH_IMAGE_PULL_POLICY: z.enum(['Always', 'IfNotPresent']).default('Always'),
  BERTH_DEFAULT_POOL: poolSpec.optional(),
  BERTH_CLAIM_ON_POD: z.enum(['true', 'false']).default('false'),
  BERTH_REQUIRE_NETWORK_POLICY: z.enum(['true', 'false']).default('false'),
  BERTH_REQUIRE_TENANT_LABEL: z.enum(['true', 'false']).default('false'),
  BERTH_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  BERTH_ENGINE_SECRETS: names.optional(),
  BERTH_OUTSIDE_MODELS: z.enum(['true', 'false']).default('false'),
  BERTH_VALKEY_URL: z.url({ protocol: /^(rediss?|valkeys?)$/ }).optional(),
  BERTH_PROXY_URL: origin.optional(),
  BERTH_DASHBOARD_URL: origin.optional(),
  BERTH_PUBLIC_URL: origin.optional(),
  BERTH_TERMINAL_ADDR: address.optional(),
  BERTH_TERMINAL_URL: origin.optional(),
  BERTH_SCALE_NAMESPACES: namespaces.optional(),
  BERTH_METRICS_TENANTS: z.enum(['true', 'false']).default('false'),
  BERTH_WEBHOOKS: z.enum(['true', 'false']).default('false'),
  BERTH_WEBHOOK_NETWORKS: networks.optional(),
  BERTH_KEY_DEFAULT_DAYS: days.default(0),
  BERTH_KEY_MAX_DAYS: days.default(0),
  BERTH_TRUST_PROXY: trustProxy.prefault('false'),
  ...oidcEnvironment,
  ...tracingEnvironment,
});

export interface Config {
  /** Path of a kubeconfig. Absent inside a cluster. */
  kubeconfig: string | undefined;
  /** Namespace of Berth's own Lease and Secret. */
  namespace: string;
  http: Address;
  /** Where proxies in front of the api role connect; undefined: at `http`. */
  ingress: Address | undefined;
  metrics: Address;
  /** Folder of the certificate of `metrics`; undefined: plain HTTP. */
  metricsTls: string | undefined;
  ssh: Address & { publicHost: string; publicPort: number };
  /** Image of an instance that names none. */
  defaultImage: string;
  /** Image whose /tools fills the tools volume of each instance. */
  toolsImage: string;
  /** Architectures of nodes that the tools image is built for; undefined: all. */
  toolsArchitectures: ReadonlySet<string> | undefined;
  /** Secrets of Berth's own namespace with credentials for its images. */
  imagePullSecrets: string[];
  /** imagePullPolicy of instances. */
  imagePullPolicy: 'Always' | 'IfNotPresent';
  /** Whether the pod of a first start bears its claim. Only where admission keeps others from writing it there. */
  claimOnPod: boolean;
  /** Whether an instance waits until NetworkPolicies close its namespace. */
  requiresNetworkPolicy: boolean;
  /** Whether a namespace is a tenant only with the label `berth.dev/tenant=true`. */
  requireTenantLabel: boolean;
  /** Of the GPUPool that the controller makes where there is none; undefined: it makes none. */
  defaultPool: GpuPoolSpec | undefined;
  logLevel: string;
  /** Secrets of Berth's own namespace with keys of model servers. */
  engineSecrets: string[];
  /** Whether ModelServers are called, which are outside the cluster. */
  outsideModels: boolean;
  valkeyUrl: string | undefined;
  /** Below this host every port of an instance has a host of its own, where browsers reach it. */
  proxyUrl: URL;
  /** Where the api role finds the dashboard. */
  dashboardUrl: URL | undefined;
  /** Where people sign in to the dashboard beside the cluster's tokens. */
  oidc: OidcConfig | undefined;
  /** Where the ssh role serves terminals to the api role; undefined: not at all. */
  terminal: Address | undefined;
  /** Where the api role finds the terminals of the ssh role. */
  terminalUrl: URL | undefined;
  /** Where model servers may scale to zero and back. */
  scaleNamespaces: readonly string[];
  /** Whether metrics name tenants, API keys, and models that one tenant has for itself. */
  metricsNameTenants: boolean;
  /** Whether the api role has webhooks, and the dashboard shows them. The notifier role always has. */
  webhooks: boolean;
  /** Networks beside the internet where webhooks may lead. */
  webhookNetworks: readonly IpNetwork[];
  /** Days that API keys live which people make on the dashboard: without an end of their own, and at most; 0: no end. */
  keyDays: { default: number; max: number };
  /** Value of Express's `trust proxy`, for what comes at the address of proxies. */
  trustProxy: boolean | number | string;
  /** Where traces go; undefined: nowhere. */
  tracing: TracingConfig | undefined;
}

function unusable(why: string): never {
  throw new ConfigError(`the environment cannot be used: ${why}`);
}

function readKeyDays(value: Pick<z.infer<typeof environment>, 'BERTH_KEY_DEFAULT_DAYS' | 'BERTH_KEY_MAX_DAYS'>) {
  const { BERTH_KEY_DEFAULT_DAYS: usual, BERTH_KEY_MAX_DAYS: max } = value;
  if (max === 0 || usual <= max) return { default: usual, max };
  return unusable(`BERTH_KEY_DEFAULT_DAYS: ${usual} is more than BERTH_KEY_MAX_DAYS, which is ${max}`);
}

/** Reads the environment. An empty variable counts as absent. Throws ConfigError that names every wrong variable. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = environment.safeParse(given);
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    return unusable(lines.join('; '));
  }
  const value = parsed.data;
  return {
    kubeconfig: value.KUBECONFIG,
    namespace: value.BERTH_NAMESPACE,
    http: value.BERTH_HTTP_ADDR,
    ingress: value.BERTH_INGRESS_ADDR,
    metrics: value.BERTH_METRICS_ADDR,
    metricsTls: value.BERTH_METRICS_TLS,
    ssh: {
      ...value.BERTH_SSH_ADDR,
      publicHost:
        value.BERTH_SSH_PUBLIC_HOST ??
        (value.BERTH_SSH_ADDR.host === '0.0.0.0' ? 'localhost' : value.BERTH_SSH_ADDR.host),
      publicPort: value.BERTH_SSH_PUBLIC_PORT ?? value.BERTH_SSH_ADDR.port,
    },
    defaultImage: value.BERTH_DEFAULT_IMAGE,
    toolsImage: value.BERTH_TOOLS_IMAGE,
    toolsArchitectures: value.BERTH_TOOLS_ARCHITECTURES,
    imagePullSecrets: value.BERTH_IMAGE_PULL_SECRETS ?? [],
    imagePullPolicy: value.BERTH_IMAGE_PULL_POLICY,
    claimOnPod: value.BERTH_CLAIM_ON_POD === 'true',
    requiresNetworkPolicy: value.BERTH_REQUIRE_NETWORK_POLICY === 'true',
    requireTenantLabel: value.BERTH_REQUIRE_TENANT_LABEL === 'true',
    defaultPool: value.BERTH_DEFAULT_POOL,
    logLevel: value.BERTH_LOG_LEVEL,
    engineSecrets: value.BERTH_ENGINE_SECRETS ?? [],
    outsideModels: value.BERTH_OUTSIDE_MODELS === 'true',
    valkeyUrl: value.BERTH_VALKEY_URL,
    // Browsers know every name below localhost as this machine (RFC 6761 section 6.3).
    proxyUrl: value.BERTH_PROXY_URL ?? new URL(`http://localhost:${value.BERTH_HTTP_ADDR.port}`),
    dashboardUrl: value.BERTH_DASHBOARD_URL,
    oidc: readOidc(value, unusable),
    terminal: value.BERTH_TERMINAL_ADDR,
    terminalUrl: value.BERTH_TERMINAL_URL,
    scaleNamespaces: value.BERTH_SCALE_NAMESPACES ?? [],
    metricsNameTenants: value.BERTH_METRICS_TENANTS === 'true',
    webhooks: value.BERTH_WEBHOOKS === 'true',
    webhookNetworks: value.BERTH_WEBHOOK_NETWORKS ?? [],
    keyDays: readKeyDays(value),
    trustProxy: value.BERTH_TRUST_PROXY,
    tracing: readTracing(value, unusable),
  };
}
