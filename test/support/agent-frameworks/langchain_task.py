"""A task for LangChain: an agent with a tool and a second agent. Each argument is an API and how: `chat stream`."""

import json
import os
import sys

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

url, key = os.environ["BERTH_URL"], os.environ["BERTH_API_KEY"]


def model(api):
    if api == "messages":
        return ChatAnthropic(model="tiny", api_key=key, base_url=url)
    return ChatOpenAI(model="tiny", api_key=key, base_url=f"{url}/v1", use_responses_api=api == "responses")


def work(api, how):
    did = []
    helper = create_agent(model(api), tools=[], system_prompt="You name fruits.")

    @tool
    def note(number: int) -> str:
        """Notes a number."""
        did.append(f"note {number}")
        return "noted"

    @tool
    def ask_helper(question: str) -> str:
        """Asks for a fruit."""
        did.append(f"ask {question}")
        return helper.invoke({"messages": [("user", question)]})["messages"][-1].text

    agent = create_agent(model(api), tools=[note, ask_helper], system_prompt="Do it.")
    task = {"messages": [("user", "Do all that you can.")]}
    if how == "whole":
        return {"did": did, "final": agent.invoke(task)["messages"][-1].text}
    pieces = agent.stream(task, stream_mode="messages")
    return {"did": did, "final": "".join(one.text for one, _ in pieces if one.type == "AIMessageChunk")}


print(json.dumps([work(*words.split()) for words in sys.argv[1:]]))
