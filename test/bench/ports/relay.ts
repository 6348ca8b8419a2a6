/** The least that a program between a client and a pod can do: `relay.ts HOST PORT` prints the port that leads there. */
import { connect, createServer, type AddressInfo } from 'node:net';

const [host = '', port = ''] = process.argv.slice(2);
const server = createServer({ noDelay: true }, (client) => {
  const pod = connect({ host, port: Number(port), noDelay: true });
  client.pipe(pod).pipe(client);
  client.on('error', () => pod.destroy());
  pod.on('error', () => client.destroy());
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
