import { quoteWord } from '../lib/shell.ts';
import { BUSYBOX_IMAGE } from './built/real-node.ts';

/** The fields of an offer that the tour uses. */
export interface TourOffer {
  id: number;
  gpu_name: string;
  gpu_count: number;
  isolation: string;
  simulated: boolean;
  available: number;
}

/** The values in the lines of the tour. */
export interface TourFacts {
  /** One sentence on what the nodes are. */
  nodes: string;
  kubeconfig: string;
  /** The folder of kubectl, when we built it. */
  programs: string | undefined;
  state: string;
  server?: {
    url: string;
    apiKey: string;
    sshPort: number;
    metricsPort: number;
    envFile: string;
    offers: readonly TourOffer[];
  };
}

/** What `npm start` prints when everything runs: addresses, and lines to paste one by one. */
export function tourOf({ nodes, kubeconfig, programs, state, server }: TourFacts): string {
  if (server === undefined) {
    const path = programs === undefined ? [] : [`export PATH="$PATH":${quoteWord(programs)}`];
    const lines = [...path, `export KUBECONFIG=${quoteWord(kubeconfig)}`, 'kubectl get nodes'];
    return [nodes, `Kubeconfig  ${kubeconfig}`, '', ...lines].join('\n');
  }
  const { url, apiKey, sshPort, metricsPort, envFile, offers } = server;
  return [
    '',
    `Berth is running. ${nodes}`,
    '',
    `  Base URL    ${url}`,
    `  API key     ${apiKey}`,
    `  Kubeconfig  ${kubeconfig}`,
    `  Dashboard   ${url.replace(/\/api\/v1$/, '')}/dashboard, with a token of: kubectl create token NAME --audience=berth`,
    `  SSH         127.0.0.1, port ${sshPort}`,
    `  Metrics     http://127.0.0.1:${metricsPort}/metrics`,
    `  Values      ${envFile}`,
    '',
    'Paste this tour into a shell in the checkout, line by line:',
    '',
    '# set the values above as variables, and put kubectl on the PATH',
    `set -a; . ${quoteWord(envFile)}; set +a`,
    '',
    ...rent(offers),
    ...withKubectl(),
    ...withSsh(state, sshPort, offers),
  ].join('\n');
}

function rent(offers: readonly TourOffer[]): string[] {
  const free = offers.filter(({ simulated, available }) => simulated && available > 0);
  const offer = free.find(({ isolation, gpu_count: count }) => isolation === 'whole' && count === 1) ?? free[0];
  if (offer === undefined) return ['# no GPU is free', call('offers'), ''];
  return [
    `# list the offers, rent ${offer.gpu_count} x ${offer.gpu_name}, look at it, rename it, give it back, list the models`,
    call('offers'),
    createLine(`{"ask_id":${offer.id},"name":"tour"}`),
    call('instances/$ID'),
    call('instances/$ID', `-X PATCH -d '{"label":"mine"}'`),
    call('instances/$ID', '-X DELETE'),
    call('models'),
    '',
  ];
}

function withKubectl(): string[] {
  return [
    '# rent with kubectl',
    'kubectl apply -f deploy/samples/gpuinstance.yaml',
    'kubectl get gpuinstances,gpupools',
    'kubectl delete -f deploy/samples/gpuinstance.yaml',
    '',
  ];
}

/** Lines for a container of the real node; the simulated nodes have none. */
function withSsh(state: string, port: number, offers: readonly TourOffer[]): string[] {
  const offer = offers.find(({ simulated, available }) => !simulated && available > 0);
  if (offer === undefined) return [];
  const key = `${state}/tour_key`;
  const known = `${state}/known_hosts`;
  const fromRecord = (field: string): string =>
    `${call('instances/$ID').replace(/; echo$/, '')} | grep -o '"${field}":"[^"]*"' | cut -d'"' -f4`;
  const body = `{"ask_id":${offer.id},"name":"shell","template_image":"${BUSYBOX_IMAGE}"}`;
  return [
    '# rent a real container, and run a command in it over SSH',
    `[ -f '${key}' ] || ssh-keygen -q -t ed25519 -N '' -f '${key}'`,
    call('ssh-keys', `-d "{\\"name\\":\\"tour\\",\\"public_key\\":\\"$(cat '${key}.pub')\\"}"`),
    createLine(body),
    'kubectl wait gpuinstance "$ID" --for=condition=Ready --timeout=60s',
    `${fromRecord('known_hosts')} > '${known}'`,
    `LOGIN=$(${fromRecord('user')})`,
    `ssh -i '${key}' -p ${port} -o UserKnownHostsFile='${known}' "$LOGIN@127.0.0.1" 'hostname; env | sort'`,
    call('instances/$ID', '-X DELETE'),
    '',
  ];
}

/** One curl line; `options` come before the URL. */
function call(path: string, options = ''): string {
  const json = options.includes('-d ') ? ` -H 'Content-Type: application/json'` : '';
  const more = options === '' ? '' : ` ${options}`;
  return `curl -sS -H "Authorization: Bearer $BERTH_API_KEY"${json}${more} "$BERTH_URL/${path}"; echo`;
}

/** Creates an instance and keeps its id in $ID, with programs that every system has. */
function createLine(body: string): string {
  const create = call('instances', `-d '${body}'`).replace(/; echo$/, '');
  return `ID=$(${create} | grep -o '"id":"i-[^"]*"' | head -1 | cut -d'"' -f4); echo "$ID"`;
}
