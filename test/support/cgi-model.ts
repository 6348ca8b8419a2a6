import type { Pod, Service } from '../../src/kube/types.ts';
import { BUSYBOX_IMAGE } from '../../tools/cluster/built/real-node.ts';

const ANSWERS = {
  '/v1/models': { object: 'list', data: [{ id: 'parrot', object: 'model', created: 1, owned_by: 'test' }] },
  '/v1/chat/completions': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'parrot',
    choices: [{ index: 0, message: { role: 'assistant', content: 'chat' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
  },
  '/v1/responses': {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'parrot',
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'responses', annotations: [] }],
      },
    ],
    usage: { input_tokens: 3, output_tokens: 1, total_tokens: 4 },
  },
  '/v1/messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'parrot',
    content: [{ type: 'text', text: 'messages' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 1 },
  },
};

function script(): string {
  const cases = Object.entries(ANSWERS).map(([path, answer]) => `${path}) body='${JSON.stringify(answer)}';;`);
  return [
    '#!/bin/sh',
    'status="200 OK"',
    'case "$PATH_INFO" in',
    ...cases,
    `*) status="404 Not Found"; body='{}';;`,
    'esac',
    String.raw`printf 'Status: %s\r\nContent-Type: application/json\r\n\r\n%s' "$status" "$body"`,
  ].join('\n');
}

/** A model server in a pod of the real node: busybox's httpd with one fixed answer per dialect, and its Service. */
export function cgiModel(namespace: string, nodeName: string): { pod: Pod; service: Service } {
  const write = `mkdir -p /tmp/cgi-bin && cat > /tmp/cgi-bin/llm <<'END'\n${script()}\nEND`;
  const serve = 'chmod +x /tmp/cgi-bin/llm && exec httpd -f -p 8000 -h /tmp';
  const command = ['/bin/sh', '-c', `${write}\n${serve}`];
  return {
    pod: {
      metadata: { name: 'parrot', namespace, labels: { app: 'parrot' } },
      spec: {
        nodeName,
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'main',
            image: BUSYBOX_IMAGE,
            command,
            ports: [{ containerPort: 8000 }],
            readinessProbe: { tcpSocket: { port: 8000 }, periodSeconds: 1 },
          },
        ],
      },
    },
    service: {
      metadata: {
        name: 'parrot',
        namespace,
        labels: { 'berth.dev/model-server': 'true' },
        annotations: { 'berth.dev/model-path-prefix': '/cgi-bin/llm' },
      },
      spec: { selector: { app: 'parrot' }, ports: [{ port: 80, targetPort: 8000 }] },
    },
  };
}
