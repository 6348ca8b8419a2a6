"""A task for Pydantic AI: a tool, a second agent, and an answer of a type. Each argument is an API and how: `chat stream`."""

import asyncio
import json
import os
import sys

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

url, key = os.environ["BERTH_URL"], os.environ["BERTH_API_KEY"]


def model(api):
    if api == "messages":
        return AnthropicModel("tiny", provider=AnthropicProvider(api_key=key, base_url=url))
    kind = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    return kind("tiny", provider=OpenAIProvider(api_key=key, base_url=f"{url}/v1"))


class Answer(BaseModel):
    fruit: str
    number: int


async def work(api, how):
    did = []
    helper = Agent(model(api), instructions="You name fruits.")
    agent = Agent(model(api), instructions="Do it.", output_type=Answer)

    @agent.tool_plain
    def note(number: int) -> str:
        """Notes a number."""
        did.append(f"note {number}")
        return "noted"

    @agent.tool_plain
    async def ask_helper(question: str) -> str:
        """Asks for a fruit."""
        did.append(f"ask {question}")
        return (await helper.run(question)).output

    if how == "whole":
        answer = (await agent.run("Do all that you can.")).output
    else:
        async with agent.run_stream("Do all that you can.") as result:
            answer = await result.get_output()
    return {"did": did, "final": answer.model_dump()}


print(json.dumps([asyncio.run(work(*words.split())) for words in sys.argv[1:]]))
