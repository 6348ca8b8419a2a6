import { quote } from '../../../lib/quote.ts';

export interface Snippet {
  name: string;
  /** The API that the program speaks. */
  dialect: 'chat' | 'responses' | 'messages';
  text: string;
}

interface Wanted {
  /** Scheme and host of this server. */
  origin: string;
  model: string;
  /** Tokens; null where the engine does not say. */
  context: number | null;
}

const KEY = 'export BERTH_API_KEY=berth_...';

/** Programs that call the model, ready to copy but for the key. A name of a model stays one word in each language. */
export function snippetsFor({ origin, model, context }: Wanted): Snippet[] {
  const [v1, base] = [`${origin}/api/v1`, `${origin}/api`];
  // JSON's texts are texts of Python, TypeScript and TOML too.
  const [name, word] = [JSON.stringify(model), quote(model)];
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  return [
    {
      name: 'Claude Code',
      dialect: 'messages',
      text: [
        KEY,
        `export ANTHROPIC_BASE_URL=${quote(base)} ANTHROPIC_AUTH_TOKEN=$BERTH_API_KEY`,
        `export ANTHROPIC_MODEL=${word} ANTHROPIC_DEFAULT_HAIKU_MODEL=${word}`,
        ...(context === null ? [] : [`export CLAUDE_CODE_MAX_CONTEXT_TOKENS=${context}`]),
        'claude',
      ].join('\n'),
    },
    {
      name: 'Codex',
      dialect: 'responses',
      text: [
        '# ~/.codex/config.toml; then: ' + KEY,
        `model = ${name}`,
        'model_provider = "berth"',
        ...(context === null ? [] : [`model_context_window = ${context}`]),
        '',
        '[model_providers.berth]',
        'name = "Berth"',
        `base_url = "${v1}"`,
        'env_key = "BERTH_API_KEY"',
        'wire_api = "responses"',
      ].join('\n'),
    },
    {
      name: 'OpenAI, Python',
      dialect: 'chat',
      text: [
        'import os',
        'from openai import OpenAI',
        '',
        `client = OpenAI(base_url="${v1}", api_key=os.environ["BERTH_API_KEY"])`,
        'answer = client.chat.completions.create(',
        `    model=${name}, messages=[{"role": "user", "content": "Hello"}]`,
        ')',
        'print(answer.choices[0].message.content)',
      ].join('\n'),
    },
    {
      name: 'OpenAI, TypeScript',
      dialect: 'chat',
      text: [
        "import OpenAI from 'openai';",
        '',
        `const client = new OpenAI({ baseURL: '${v1}', apiKey: process.env['BERTH_API_KEY'] });`,
        'const answer = await client.chat.completions.create({',
        `  model: ${name},`,
        "  messages: [{ role: 'user', content: 'Hello' }],",
        '});',
        'console.log(answer.choices[0]?.message.content);',
      ].join('\n'),
    },
    {
      name: 'Anthropic, Python',
      dialect: 'messages',
      text: [
        'import os',
        'from anthropic import Anthropic',
        '',
        `client = Anthropic(base_url="${base}", auth_token=os.environ["BERTH_API_KEY"])`,
        'answer = client.messages.create(',
        `    model=${name}, max_tokens=1024, messages=[{"role": "user", "content": "Hello"}]`,
        ')',
        'print(answer.content[0].text)',
      ].join('\n'),
    },
    {
      name: 'Anthropic, TypeScript',
      dialect: 'messages',
      text: [
        "import Anthropic from '@anthropic-ai/sdk';",
        '',
        `const client = new Anthropic({ baseURL: '${base}', authToken: process.env['BERTH_API_KEY'] });`,
        'const answer = await client.messages.create({',
        `  model: ${name},`,
        '  max_tokens: 1024,',
        "  messages: [{ role: 'user', content: 'Hello' }],",
        '});',
        'console.log(answer.content);',
      ].join('\n'),
    },
    {
      name: 'curl',
      dialect: 'chat',
      text: [
        KEY,
        `curl ${quote(`${v1}/chat/completions`)} \\`,
        '  -H "Authorization: Bearer $BERTH_API_KEY" -H \'Content-Type: application/json\' \\',
        `  -d ${quote(body)}`,
      ].join('\n'),
    },
  ];
}
