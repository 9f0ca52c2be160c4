# Servers under load: more connections than threads, more threads than processors; every answer is checked.
# Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# end PID: asks a server that was begun to end, and says how it did
end() {
	kill -TERM "$1"
	wait "$1"
	echo "ended: $?"
}

# serve KIND PORT SERVER...: starts it, puts load on it, ends it
serve() {
	local kind=$1 port=$2 code
	shift 2
	begin server.out "$@"
	timeout 60 /usr/bin/python3 "$TOP/test/programs/load.py" "$kind" "$port" 16 50
	code=$?
	end "$begun"
	[ $code = 0 ] || tail -n 20 server.out >&2
	return $code
}
make_files() {
	local i
	for i in 0 1 2 3 4 5 6 7; do head -c $((100000 + i)) /dev/zero | tr '\0' $i >"$1/f$i"; done
}

# Files in this directory at port `back`, by a server of nobody's interest: process `files`.
serve_files() {
	make_files .
	back=$(free_port)
	/usr/bin/python3 -m http.server --bind 127.0.0.1 "$back" >/dev/null 2>&1 &
	files=$!
}

memcached() {
	local port
	port=$(free_port)
	serve memcached "$port" memcached -u nobody -l 127.0.0.1 -p "$port" -t 4
}
redis() {
	local port
	port=$(free_port)
	serve redis "$port" redis-server --port "$port" --bind 127.0.0.1 --save '' --io-threads 4 \
		--io-threads-do-reads yes --dir "$PWD"
}
nginx() {
	local port
	port=$(free_port)
	make_files .
	cat >conf <<-END
		daemon off; master_process off; pid $PWD/pid; error_log $PWD/log;
		thread_pool files threads=8;
		events { worker_connections 256; }
		http {
			access_log off; client_body_temp_path $PWD/a; proxy_temp_path $PWD/b; fastcgi_temp_path $PWD/c;
			uwsgi_temp_path $PWD/d; scgi_temp_path $PWD/e;
			server { listen 127.0.0.1:$port; root $PWD; aio threads=files; sendfile off; output_buffers 2 16k; }
		}
	END
	serve http "$port" nginx -c "$PWD/conf" -p "$PWD"
}
apache() { # MPM
	local port
	port=$(free_port)
	make_files .
	cat >conf <<-END
		ServerRoot $PWD
		ServerName localhost
		Listen 127.0.0.1:$port
		PidFile $PWD/pid
		ErrorLog $PWD/log
		Mutex pthread
		LoadModule mpm_$1_module /usr/lib/apache2/modules/mod_mpm_$1.so
		LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
		StartServers 1
		ServerLimit 1
		ThreadsPerChild 25
		MaxRequestWorkers 25
		MinSpareThreads 1
		MaxSpareThreads 25
		User nobody
		DocumentRoot $PWD
	END
	chmod 755 . && serve http "$port" apache2 -DFOREGROUND -f "$PWD/conf"
}
apache_event() { apache event; }
apache_worker() { apache worker; }
haproxy() {
	local port back files code
	port=$(free_port)
	serve_files
	cat >conf <<-END
		global
			nbthread 4
		defaults
			mode http
			timeout connect 5s
			timeout client 20s
			timeout server 20s
		frontend in
			bind 127.0.0.1:$port
			default_backend out
		backend out
			server one 127.0.0.1:$back
	END
	serve http "$port" haproxy -db -f conf
	code=$?
	kill $files
	return $code
}
varnish() {
	local port back files code
	port=$(free_port)
	serve_files
	chmod 755 .
	serve http "$port" varnishd -F -j none -n "$PWD/v" -a "127.0.0.1:$port" -b "127.0.0.1:$back" -s malloc,16m
	code=$?
	kill $files
	return $code
}
lighttpd() {
	local port
	port=$(free_port)
	make_files .
	printf 'server.document-root = "%s"\nserver.port = %s\nserver.bind = "127.0.0.1"\nserver.max-worker = 0\n' "$PWD" "$port" >conf
	serve http "$port" lighttpd -D -f conf
}
unbound() {
	local port
	port=$(free_port)
	cat >conf <<-END
		server:
			interface: 127.0.0.1
			port: $port
			num-threads: 4
			do-daemonize: no
			use-syslog: no
			username: ""
			chroot: ""
			directory: "$PWD"
			pidfile: "$PWD/pid"
			module-config: "iterator"
			local-zone: "test." static
			local-data: "h0.test. A 10.0.0.0"
			local-data: "h1.test. A 10.0.0.1"
			local-data: "h2.test. A 10.0.0.2"
			local-data: "h3.test. A 10.0.0.3"
		remote-control:
			control-enable: no
	END
	serve dns "$port" unbound -d -c conf
}
named() {
	local port
	port=$(free_port)
	cat >zone <<-END
		\$TTL 60
		@ SOA ns a 1 1 1 1 1
		@ NS ns
		ns A 127.0.0.1
		h0 A 10.0.0.0
		h1 A 10.0.0.1
		h2 A 10.0.0.2
		h3 A 10.0.0.3
	END
	cat >conf <<-END
		options { directory "$PWD"; listen-on port $port { 127.0.0.1; }; listen-on-v6 { none; }; recursion no;
			pid-file "$PWD/pid"; session-keyfile "$PWD/key"; };
		controls { };
		zone "test" { type master; file "$PWD/zone"; };
	END
	serve dns "$port" named -f -n 4 -c "$PWD/conf"
}
mosquitto() {
	local port server listener
	port=$(free_port)
	printf 'listener %s 127.0.0.1\nallow_anonymous true\n' "$port" >conf
	begin server.out mosquitto -c conf
	server=$begun
	sleep 0.3
	run mosquitto_sub -p "$port" -t a/b -C 20 >got & # ends by itself
	listener=$!
	sleep 0.3
	seq 20 | run mosquitto_pub -p "$port" -t a/b -l -q 1
	wait "$listener"
	sort -n got | tr '\n' ' '
	end "$server"
}
mariadb() {
	local port code server i
	port=$(free_port)
	mkdir data tmp && chmod 777 . data tmp
	mariadb-install-db --no-defaults --user=root --auth-root-authentication-method=normal --datadir="$PWD/data" --skip-test-db >install.out 2>&1 || { tail -5 install.out; return 1; }
	begin server.out mariadbd --no-defaults --user=root --datadir="$PWD/data" --tmpdir="$PWD/tmp" --socket="$PWD/s" --port="$port" --bind-address=127.0.0.1 \
		--pid-file="$PWD/pid" --thread-handling="${1:-one-thread-per-connection}" --innodb-buffer-pool-size=32M --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=2
	server=$begun
	for i in $(seq 150); do [ -S s ] && break; sleep 0.1; done
	{ mariadb-cli() { command mariadb --no-defaults -u root -S s "$@"; }
	mariadb-cli -e 'create database sbtest' &&
		sysbench oltp_read_write --db-driver=mysql --mysql-socket="$PWD/s" --mysql-user=root --tables=2 --table-size=500 prepare >out 2>&1 &&
		sysbench oltp_read_write --db-driver=mysql --mysql-socket="$PWD/s" --mysql-user=root --tables=2 --table-size=500 --threads=8 --time=0 --events=400 run >out2 2>&1 &&
		grep -oE 'transactions: +[0-9]+' out2 && mariadb-cli -N -e 'select count(*) from sbtest.sbtest1; check table sbtest.sbtest1; check table sbtest.sbtest2'; } || { cat out out2 >&2; }
	code=$?
	end "$server"
	[ $code = 0 ] || tail -n 20 server.out >&2
	return $code
}
mariadb_pool() { mariadb pool-of-threads; }

# Redis' I/O threads spin for each other without a yield: they need as many virtual processors as threads until there is
# preemption.
HELD="rotator/4 steal/4 rotator/8 steal/8"
compare memcached 90 "memcached /usr/bin/python3" "rotator/2" "$EVERY"
compare redis 90 "redis-server /usr/bin/python3" "rotator/4" "$HELD"
compare nginx 90 "nginx /usr/bin/python3" "rotator/2" "$EVERY"
compare apache-event 90 "apache2" - "$EVERY"
compare apache-worker 90 "apache2" - "$EVERY"
compare haproxy 90 "haproxy" - "$EVERY"
compare varnish 90 "varnishd" - "$EVERY"
compare lighttpd 90 "lighttpd" - "$EVERY"
compare unbound 90 "unbound" - "$EVERY"
compare named 90 "named" - "$EVERY"
compare mosquitto 30 "mosquitto mosquitto_sub" - "$EVERY"
compare mariadb 90 "mariadbd sysbench" - "$EVERY"
compare mariadb-pool 90 "mariadbd sysbench" - "$EVERY"
