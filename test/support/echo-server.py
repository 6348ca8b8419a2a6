# What the proxy tests talk to inside an instance: tells what it got, answers what a hostile page would, echoes WebSockets.
import json
from tornado import ioloop, web, websocket

PAGE = """<!doctype html><title>loading</title><script>
const socket = new WebSocket(`ws://${location.host}/ws`);
socket.onopen = () => socket.send('hello');
socket.onmessage = ({ data }) => { document.title = data; };
</script>"""


class Echo(web.RequestHandler):
    def prepare(self):
        told = {"method": self.request.method, "uri": self.request.uri, "size": len(self.request.body)}
        self.write(json.dumps({**told, "headers": dict(self.request.headers)}))
        self.finish()


class Page(web.RequestHandler):
    def get(self):
        self.add_header("Set-Cookie", "berth_session=forged; Path=/")
        self.add_header("Set-Cookie", "mine=1; Path=/; Domain=localhost")
        self.set_header("Access-Control-Allow-Origin", "https://evil.test")
        self.write(PAGE)


class Away(web.RequestHandler):
    def get(self):
        self.redirect(self.get_argument("to"))


class Large(web.RequestHandler):
    async def get(self):
        for _ in range(64):
            self.write(b"x" * 1048576)
            await self.flush()


class Socket(websocket.WebSocketHandler):
    def on_message(self, message):
        self.write_message(message, isinstance(message, bytes))


handlers = [("/page", Page), ("/away", Away), ("/large", Large), ("/ws", Socket), ("/.*", Echo)]
web.Application(handlers).listen(7000, "127.0.0.1", max_body_size=1 << 30)
ioloop.IOLoop.current().start()
