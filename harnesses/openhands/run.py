"""Runs one task with the OpenHands SDK: its default agent with its three tools, ended by its finish tool.

Owns reading the environment and the exit code. Uses the SDK's public interface only and changes nothing of it.

environment  LLM_MODEL, LLM_BASE_URL, LLM_API_KEY          the model, an OpenAI Chat Completions endpoint
             OPENHANDS_CONTEXT_TOKENS, OPENHANDS_OUTPUT_TOKENS
             OPENHANDS_TASK, OPENHANDS_WORKSPACE, OPENHANDS_STATE
exit code    0 finished, 1 stopped otherwise
"""

import os
import sys

# Here and in no variable: what the agent runs must not find these packages.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site"))

from openhands.sdk import Conversation, LLM  # noqa: E402
from openhands.sdk.context.condenser import LLMSummarizingCondenser  # noqa: E402
from openhands.tools.preset.default import get_default_agent  # noqa: E402

# The SDK's condenser counts events unless it is told a number of tokens: leave room for a reply and a result.
CONDENSE_AT_SHARE = 0.8


def main() -> int:
    env = os.environ
    context_tokens = int(env["OPENHANDS_CONTEXT_TOKENS"])
    llm = LLM(
        model=env["LLM_MODEL"],
        base_url=env["LLM_BASE_URL"],
        api_key=env["LLM_API_KEY"],
        api_mode="chat",
        stream=True,
        max_input_tokens=context_tokens,
        max_output_tokens=int(env["OPENHANDS_OUTPUT_TOKENS"]),
        usage_id="agent",
    )
    condenser = LLMSummarizingCondenser(
        llm=llm.model_copy(update={"usage_id": "condenser"}),
        max_tokens=int(context_tokens * CONDENSE_AT_SHARE),
        keep_first=2,
    )
    agent = get_default_agent(llm=llm, cli_mode=True).model_copy(update={"condenser": condenser})
    conversation = Conversation(
        agent=agent,
        workspace=env["OPENHANDS_WORKSPACE"],
        persistence_dir=env["OPENHANDS_STATE"],
        # Streaming needs a listener; the events are kept by the conversation anyway.
        token_callbacks=[lambda chunk: None],
        visualizer=None,
        delete_on_close=False,
    )
    try:
        conversation.send_message(env["OPENHANDS_TASK"])
        conversation.run()
        status = conversation.state.execution_status.value
    finally:
        conversation.close()
    print(f"openhands: {status}")
    return 0 if status == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
