# What the benchmark of ports talks to in an instance: pages of 1 KiB, WebSockets that echo, and WebSockets that send a lot.
from tornado import ioloop, web, websocket


class Page(web.RequestHandler):
    def get(self):
        self.write(b"x" * 1024)


class Echo(websocket.WebSocketHandler):
    def on_message(self, message):
        self.write_message(message, isinstance(message, bytes))


class Large(websocket.WebSocketHandler):
    async def on_message(self, message):
        for _ in range(int(message)):
            await self.write_message(b"x" * 262144, True)


web.Application([("/echo", Echo), ("/large", Large), ("/.*", Page)]).listen(7000)
ioloop.IOLoop.current().start()
