// A language model on this machine with the interface of OpenAI; it says what a test wants.
//
// A reply is a text, or { text, calls: [{ tool, arguments }], pace, delay, status }: `pace` are
// milliseconds between two words of a stream, `delay` those before the reply begins.

import { once } from "node:events";
import { createServer } from "node:http";

// Unreferenced: a reply that nobody waits for any more does not hold up the end of the tests.
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds).unref());

/** Start a model. */
export async function startModel() {
  const model = new Model();
  await model.listen();
  return model;
}

class Model {
  #replies = [];
  #numbers = 0;
  #server = createServer((request, response) => {
    this.#answer(request, response).catch((error) => response.destroy(error));
  });

  constructor() {
    /** The bodies of all requests. */
    this.requests = [];
    /** Returns the reply to a request's body, when no reply is queued. */
    this.decide = () => "ok";
    this.url = "";
  }

  async listen() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${this.#server.address().port}/v1`;
  }

  /** Queue replies, one for each request that comes. */
  say(...replies) {
    this.#replies.push(...replies);
  }

  async close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request, response) {
    const pieces = await request.toArray();
    const body = JSON.parse(Buffer.concat(pieces).toString("utf8") || "{}");
    this.requests.push(body);
    const given = this.#replies.shift() ?? this.decide(body);
    const reply = typeof given === "string" ? { text: given } : given;
    await sleep(reply.delay ?? 0);
    if (reply.status && reply.status !== 200) {
      sendJson(response, { error: { message: reply.text ?? "refused", type: "scripted" } }, reply.status);
      return;
    }
    this.#numbers += 1;
    const calls = (reply.calls ?? []).map((call, index) => ({
      index,
      id: `call_${this.#numbers}_${index}`,
      type: "function",
      function: { name: call.tool, arguments: JSON.stringify(call.arguments ?? {}) },
    }));
    const frame = { id: `reply-${this.#numbers}`, created: 1763000000, model: body.model };
    const text = reply.text ?? "";
    const finish = calls.length ? "tool_calls" : "stop";
    const usage = usageOf(body, text);
    if (!body.stream) {
      const message = { role: "assistant", content: text || null };
      if (calls.length) message.tool_calls = calls;
      const choices = [{ index: 0, message, finish_reason: finish }];
      sendJson(response, { ...frame, object: "chat.completion", choices, usage });
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (rest) =>
      response.write(`data: ${JSON.stringify({ ...frame, object: "chat.completion.chunk", ...rest })}\n\n`);
    const sendDelta = (delta, finish_reason = null) =>
      send({ choices: [{ index: 0, delta, finish_reason }] });
    sendDelta({ role: "assistant", content: "" });
    for (const word of text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) {
      sendDelta({ content: word });
      if (reply.pace) await sleep(reply.pace);
    }
    for (const call of calls) sendDelta({ tool_calls: [call] });
    sendDelta({}, finish);
    send({ choices: [], usage });
    response.end("data: [DONE]\n\n");
  }
}

function sendJson(response, data, status = 200) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(data));
}

/** Count about four characters as one token. */
function usageOf(body, text) {
  const given = Math.ceil(JSON.stringify(body.messages ?? "").length / 4);
  const written = Math.ceil(text.length / 4) + 1;
  return { prompt_tokens: given, completion_tokens: written, total_tokens: given + written };
}
