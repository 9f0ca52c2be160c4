#!/usr/bin/env escript
%%! +S 4 +A 8
%% Processes of Erlang, on schedulers that run compiled code on stacks in their heaps; files by the asynchronous threads, a
%% program, and a connection.
-mode(compile).

fall(0) -> 0;
fall(N) -> 1 + fall(N - 1).

computes(N) ->
	Sum = lists:sum([fall(1000) + length(lists:seq(1, N)) || _ <- lists:seq(1, 10)]),
	receive go -> Sum after 5 -> Sum end.

%% What each of N processes has returned.
all(N, What) ->
	Self = self(),
	Refs = [begin R = make_ref(), spawn_link(fun() -> Self ! {R, What(I)} end), R end || I <- lists:seq(1, N)],
	[receive {R, X} -> X end || R <- Refs].

main(_) ->
	io:format("~p~n", [lists:sum(all(3000, fun(I) -> computes(I rem 100) end))]),
	io:format("~p~n", [length([ok || {ok, _} <- all(100, fun(_) -> file:list_dir("/usr") end)])]),
	io:format("~s", [os:cmd("echo a program")]),
	{ok, Listener} = gen_tcp:listen(0, [binary, {active, false}]),
	{ok, Port} = inet:port(Listener),
	spawn_link(fun() ->
		{ok, S} = gen_tcp:accept(Listener),
		{ok, Said} = gen_tcp:recv(S, 5),
		ok = gen_tcp:send(S, [Said, " again"])
	end),
	{ok, C} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}]),
	ok = gen_tcp:send(C, "hello"),
	io:format("~p~n", [gen_tcp:recv(C, 11)]).
