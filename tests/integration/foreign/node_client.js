#!/usr/bin/env node
// A client in JavaScript, with @grpc/grpc-js and @grpc/proto-loader, which read our .proto files as
// they are. Run it with with_server.sh, and NODE_PATH at the node_modules of tests/npm. The last
// line is `N passed, N failed`.
'use strict';

const assert = require('assert');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const health = require('grpc-health-check');
const loader = require('@grpc/proto-loader');

const PROTO = process.env.SPILLWAY_PROTO;
const CHUNK_BYTES = 256 * 1024;
// Long enough for a busy machine; a call that hangs fails.
const PATIENCE_MS = 60000;

const loaded = loader.loadSync(
    fs.readdirSync(path.join(PROTO, 'spillway/v1')).map((name) => `spillway/v1/${name}`),
    {includeDirs: [PROTO], keepCase: true, longs: String, enums: String, oneofs: true});
const v1 = grpc.loadPackageDefinition(loaded).spillway.v1;
const read = (name) => fs.readFileSync(process.env[`SPILLWAY_${name}`]);
const sha256 = (bytes) => crypto.createHash('sha256').update(bytes).digest();
const deadline = (ms = PATIENCE_MS) => ({deadline: Date.now() + ms});

const client = new v1.RewriteService(
    process.env.SPILLWAY_SERVER, grpc.credentials.createInsecure(),
    {'grpc.max_receive_message_length': 64 << 20});
const options = {scope: {fuse_swapins: true, lb: 5}, min_tensor_bytes: 4096};

function call(method, request) {
  return new Promise((resolve, reject) => {
    client[method](request, deadline(),
                   (error, answer) => error ? reject(error) : resolve(answer));
  });
}

const rewrite = (graph_def, some = options) => call('Rewrite', {graph_def, options: some});

// Writes while it reads, and waits where the server is slower.
function stream(graph, some = options, announced = graph.length) {
  return new Promise((resolve, reject) => {
    const duplex = client.StreamRewrite(deadline());
    const chunks = [];
    let header = null;
    duplex.on('data', (answer) => {
      if (answer.part === 'header') header = answer.header;
      else chunks.push(answer.chunk);
    });
    duplex.on('error', reject);
    duplex.on('end', () => header && resolve({header, graph: Buffer.concat(chunks)}));
    duplex.write({header: {options: some, graph: {total_size_bytes: announced, sha256: sha256(graph)}}});
    let at = 0;
    const send = () => {
      while (at < graph.length) {
        const chunk = graph.subarray(at, at + CHUNK_BYTES);
        at += CHUNK_BYTES;
        if (!duplex.write({chunk})) return duplex.once('drain', send);
      }
      duplex.end();
    };
    send();
  });
}

// The ErrorInfo of a call that must be refused so, read with our own error.proto.
async function refused(promise, code, reason) {
  const error = await promise.then(() => assert.fail('was not refused'), (e) => e);
  assert.strictEqual(error.code, code, error.message);
  const [details] = error.metadata.get('grpc-status-details-bin');
  assert(details, 'no grpc-status-details-bin');
  const root = require('protobufjs').loadSync([
    path.join(PROTO, 'spillway/v1/error.proto'),
  ]);
  const status = root.lookupType('spillway.v1.StatusDetails').decode(details);
  assert.strictEqual(status.code, code);
  assert.strictEqual(status.message, error.details);
  const [any] = status.details;
  assert.strictEqual(any.type_url, 'type.googleapis.com/google.rpc.ErrorInfo');
  const info = root.lookupType('spillway.v1.ErrorInfo').decode(any.value);
  assert.strictEqual(info.domain, 'spillway.v1');
  assert.strictEqual(info.reason, reason);
  assert(`ERROR_REASON_${reason}` in root.lookupEnum('spillway.v1.ErrorReason').values, reason);
  return info;
}

const {INVALID_ARGUMENT, DEADLINE_EXCEEDED, CANCELLED, NOT_FOUND} = grpc.status;

const tests = {
  async unary() {
    const answer = await rewrite(read('SMALL'));
    assert(answer.graph_def.equals(read('SMALL_REWRITTEN')));
    assert.strictEqual(answer.report.outcome, 'OUTCOME_REWRITTEN');
    assert(answer.report.swaps.length > 0);
  },

  async stream() {
    const {header, graph} = await stream(read('LARGE'));
    assert(graph.equals(read('LARGE_REWRITTEN')));
    assert.strictEqual(header.graph.total_size_bytes, String(graph.length));
    assert(header.graph.sha256.equals(sha256(graph)));
    assert.strictEqual(header.report.outcome, 'OUTCOME_REWRITTEN');
  },

  async strip() {
    const answer = await rewrite(read('SMALL_REWRITTEN'), {strip: {}});
    assert(answer.graph_def.equals(read('SMALL')));
    const {graph} = await stream(read('LARGE_REWRITTEN'), {strip: {}});
    assert(graph.equals(read('LARGE')));
  },

  async many_at_once() {
    const answers = await Promise.all(Array.from({length: 16}, () => rewrite(read('SMALL'))));
    for (const answer of answers) assert(answer.graph_def.equals(read('SMALL_REWRITTEN')));
  },

  async malformed_graph() {
    await refused(rewrite(Buffer.from([255, 255])), INVALID_ARGUMENT, 'MALFORMED_GRAPH');
  },

  async wrong_option() {
    const info = await refused(
        rewrite(read('SMALL'), {scope: {optimizer_scopes: ['(']}}), INVALID_ARGUMENT, 'BAD_REGEX');
    assert(Object.keys(info.metadata).length > 0);
  },

  async stream_of_another_size() {
    const graph = read('SMALL');
    await refused(stream(graph, options, graph.length + 1), INVALID_ARGUMENT, 'BAD_STREAM');
  },

  async deadline() {
    // The client never sends what its header announces, so nothing but the deadline ends it.
    const duplex = client.StreamRewrite(deadline(300));
    duplex.write({header: {options, graph: {total_size_bytes: 1000}}});
    const error = await new Promise((resolve) => duplex.on('error', resolve).resume());
    assert.strictEqual(error.code, DEADLINE_EXCEEDED);
  },

  async cancellation() {
    const duplex = client.StreamRewrite(deadline());
    duplex.write({header: {options, graph: {total_size_bytes: 1000}}});
    const ended = new Promise((resolve) => duplex.on('error', resolve).resume());
    duplex.cancel();
    assert.strictEqual((await ended).code, CANCELLED);
    // The server goes on.
    const answer = await rewrite(read('SMALL'));
    assert(answer.graph_def.equals(read('SMALL_REWRITTEN')));
  },

  async capabilities() {
    const answer = await call('GetCapabilities', {});
    assert(answer.strategies.includes('STRATEGY_SCOPE'));
    assert(Number(answer.limits.max_graph_bytes) > 0);
    assert.strictEqual(answer.version.split('.').length, 3);
  },

  async health() {
    const service = grpc.makeGenericClientConstructor(health.service, 'Health');
    const checker =
        new service(process.env.SPILLWAY_SERVER, grpc.credentials.createInsecure());
    const check = (name) => new Promise((resolve, reject) => {
      checker.check({service: name}, deadline(),
                    (error, answer) => error ? reject(error) : resolve(answer.status));
    });
    try {
      for (const name of ['', 'spillway.v1.RewriteService']) {
        assert.strictEqual(await check(name), 'SERVING');
      }
      const error = await check('no.such').then(() => assert.fail('is no service'), (e) => e);
      assert.strictEqual(error.code, NOT_FOUND);
    } finally {
      checker.close();
    }
  },
};

async function main() {
  let passed = 0, failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      ++passed;
      console.log('ok      node', name);
    } catch (error) {
      ++failed;
      console.log(`FAILED  node ${name}: ${String(error.stack).slice(0, 1000)}`);
    }
  }
  client.close();
  console.log(`${passed} passed, ${failed} failed`);
  // grpc-js keeps the timer of a cancelled call's deadline, for which node would wait.
  process.exit(failed ? 1 : 0);
}

main();
