// Node's worker threads with shared memory, and its pool: key derivation, compression, files.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const crypto = require('crypto'), fs = require('fs'), zlib = require('zlib');

if (isMainThread) {
	const shared = new SharedArrayBuffer(4), all = [];
	let sum = 0;
	for (let i = 0; i < 6; i++)
		all.push(new Promise((done, failed) => {
			const w = new Worker(__filename, { workerData: { i, shared } });
			w.on('message', (m) => { sum += m; });
			w.on('error', failed);
			w.on('exit', done);
		}));
	for (let i = 0; i < 16; i++) {
		all.push(new Promise((done) => crypto.pbkdf2('p' + i, 's', 2000, 32, 'sha256', (e, k) => { sum += k[0]; done(); })));
		all.push(new Promise((done) => zlib.deflate(Buffer.alloc(200000, i), (e, b) => { sum += b.length; done(); })));
		all.push(new Promise((done) => fs.readFile(__filename, (e, b) => { sum += b.length; done(); })));
	}
	Promise.all(all).then(() => console.log('sum', sum, Atomics.load(new Int32Array(shared), 0)));
} else {
	const counter = new Int32Array(workerData.shared);
	let s = 0;
	for (let k = 0; k < 1e6; k++)
		s = (s + k * workerData.i) % 1000003;
	for (let k = 0; k < 1000; k++)
		Atomics.add(counter, 0, 1);
	parentPort.postMessage(s);
}
