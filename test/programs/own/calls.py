"""Remote procedure calls by gRPC: a server with a pool of threads, clients that are threads of another pool."""
from concurrent.futures import ThreadPoolExecutor

import grpc

SERVERS, CLIENTS, CALLS = 16, 20, 20


class Reverse(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request[::-1])


server = grpc.server(ThreadPoolExecutor(SERVERS))
server.add_generic_rpc_handlers((Reverse(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    reverse = channel.unary_unary("/kochab/reverse")

    def client(i):
        return sum(reverse(b"%d" % k, timeout=60)[::-1] == b"%d" % k for k in range(i, i + CALLS))

    with ThreadPoolExecutor(CLIENTS) as pool:
        print(sum(pool.map(client, range(CLIENTS))), "calls are right")
server.stop(1).wait()
