"""Rents by the Python client that is generated from /openapi.json.

`renter.py STEP` reads the arguments of the step from standard input, as JSON, and prints its answer as JSON. BERTH_URL
ends in /api/v1, BERTH_API_KEY is the key.
"""

import json
import os
import sys
import time

import httpx
from berth_client import AuthenticatedClient
from berth_client.api.instances import (
    create_instance,
    delete_instance,
    get_instance,
    get_instance_events,
    get_instance_logs,
    update_instance,
)
from berth_client.api.models import list_models
from berth_client.api.offers import list_offers
from berth_client.api.registries import create_registry, delete_registry
from berth_client.api.ssh_keys import create_ssh_key, delete_ssh_key
from berth_client.models import (
    ApiError,
    CreateInstance,
    CreateRegistry,
    CreateSSHKey,
    DeletedInstance,
    DeletedRegistry,
    DeletedSSHKey,
    EventList,
    Instance,
    ModelList,
    OfferList,
    Registry,
    SSHKey,
    UpdateInstance,
)
from berth_client.types import UNSET

URL = os.environ["BERTH_URL"]
KEY = os.environ["BERTH_API_KEY"]
client = AuthenticatedClient(base_url=URL, token=KEY, timeout=httpx.Timeout(60))


def expect(wanted, answer):
    """The answer as a dictionary. Ends the program when it is of another type than the one that is wanted."""
    if not isinstance(answer, wanted):
        sys.exit(f"expected {wanted.__name__}, got {answer!r}")
    return answer.to_dict()


def add_key(args):
    return expect(SSHKey, create_ssh_key.sync(client=client, body=CreateSSHKey(**args)))


def remove_key(args):
    return expect(DeletedSSHKey, delete_ssh_key.sync(str(args["id"]), client=client))


def add_registry(args):
    return expect(Registry, create_registry.sync(client=client, body=CreateRegistry(**args)))


def remove_registry(args):
    return expect(DeletedRegistry, delete_registry.sync(args["name"], client=client))


def offers(_args):
    return expect(OfferList, list_offers.sync(client=client))


def rent(args):
    return expect(Instance, create_instance.sync(client=client, body=CreateInstance.from_dict(args)))


def show(args):
    return expect(Instance, get_instance.sync(args["id"], client=client))


def change(args):
    body = UpdateInstance.from_dict(args["change"])
    return expect(Instance, update_instance.sync(args["id"], client=client, body=body))


def give_back(args):
    return expect(DeletedInstance, delete_instance.sync(args["id"], client=client))


def events(args):
    return expect(EventList, get_instance_events.sync(args["id"], client=client))


def refusal(args):
    """What a body that the server refuses is answered with."""
    return expect(ApiError, create_instance.sync(client=client, body=CreateInstance.from_dict(args)))


def models_by_api_key(_args):
    """The second way to send a key: the header that Anthropic's clients use."""
    other = AuthenticatedClient(base_url=URL, token=KEY, prefix="", auth_header_name="X-Api-Key")
    return expect(ModelList, list_models.sync(client=other))


def follow(args):
    """Prints each line of a log as JSON. Goes on with the id of the last line when the server breaks off."""
    last = UNSET
    while True:
        request = get_instance_logs._get_kwargs(args["id"], follow=True, last_event_id=last)
        try:
            with client.get_httpx_client().stream(**request) as answer:
                kind = ""
                for field in answer.iter_lines() if answer.status_code == 200 else ():
                    name, _, value = field.partition(": ")
                    if name == "event":
                        kind = value
                    if name == "id":
                        last = value
                    if name == "data" and kind == "line":
                        print(json.dumps(json.loads(value)["text"]), flush=True)
        except httpx.TransportError:
            pass
        time.sleep(0.2)


STEPS = [add_key, remove_key, add_registry, remove_registry, offers, rent, show, change, give_back, events, refusal]
STEPS += [models_by_api_key, follow]

if __name__ == "__main__":
    step = next(one for one in STEPS if one.__name__ == sys.argv[1])
    print(json.dumps(step(json.load(sys.stdin))), flush=True)
