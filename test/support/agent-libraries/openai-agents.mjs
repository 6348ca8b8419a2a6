/** A task for OpenAI's library for agents: a function, a shell, a patch and another agent. Its text runs where the library is. */
import { Agent, applyPatchTool, run, setOpenAIAPI, setTracingDisabled, shellTool, tool } from '@openai/agents';
import { z } from 'zod';

const [, api, how] = process.argv;
const isStream = how === 'stream';
setTracingDisabled(true);
setOpenAIAPI(api);
const did = [];
const note = tool({
  name: 'note',
  description: 'Notes a number',
  parameters: z.object({ number: z.number() }),
  execute: ({ number }) => `noted ${did.push(`note ${number}`) > 0}`,
});
const shell = shellTool({
  shell: {
    run: async ({ commands }) => {
      did.push(`shell ${commands.join(';')}`);
      return { output: [{ stdout: 'a.txt', stderr: '', outcome: { type: 'exit', exitCode: 0 } }] };
    },
  },
});
const edit = ({ type, path }) => ({ status: 'completed', output: `done ${did.push(`${type} ${path}`) > 0}` });
const patch = applyPatchTool({ editor: { createFile: edit, updateFile: edit, deleteFile: edit } });
const helper = new Agent({ name: 'helper', model: 'tiny', instructions: 'You name fruits.' });
const asked = helper.asTool({ toolName: 'ask_helper', toolDescription: 'Asks for a fruit' });
const own = api === 'responses' ? [shell, patch] : [];
const agent = new Agent({ name: 'main', model: 'tiny', instructions: 'Do it.', tools: [note, asked, ...own] });
const result = await run(agent, 'Do all that you can.', { stream: isStream });
if (isStream) for await (const _event of result);
process.stdout.write(JSON.stringify({ did, final: result.finalOutput }));
