-- What scripts/bench has wrk send: `wrk … -s scripts/bench.lua URL -- publish|health`.
-- Every publish is a Welcome that nobody sent before, of 256 bytes, to one of 10,000 topics.

local TOPICS = 10000
local PAYLOAD_BYTES = 256

local function varint(n)
  local bytes = {}
  while n >= 128 do
    bytes[#bytes + 1] = string.char(n % 128 + 128)
    n = math.floor(n / 128)
  end
  return table.concat(bytes) .. string.char(n)
end

-- A field of the wire type "length-delimited".
local function field(number, bytes)
  return string.char(number * 8 + 2) .. varint(#bytes) .. bytes
end

local function frame(message)
  local n = #message
  return string.char(0, 0, math.floor(n / 65536) % 256, math.floor(n / 256) % 256, n % 256) .. message
end

local function publish_request(topic, payload)
  local key = string.format("%032d", topic)
  local v1 = field(1, key) .. field(2, payload) .. field(3, string.rep("h", 32)) .. "\32\1"
  return frame(field(1, field(2, field(1, v1))))
end

local threads = {}

function setup(thread)
  thread:set("id", #threads)
  table.insert(threads, thread)
end

function init(args)
  mode = args[1]
  count, failed = 0, 0
  math.randomseed(os.time() + id)
  -- Different in each run and in each thread: the same bytes would be a duplicate.
  run = string.format("%d-%d-%d-", os.time(), id, math.random(1e9))
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/grpc-web+proto"
  health = wrk.format(nil, "/grpc.health.v1.Health/Check", nil, frame(""))
end

function request()
  if mode == "health" then return health end
  count = count + 1
  local unique = run .. count
  local payload = unique .. string.rep(".", PAYLOAD_BYTES - #unique)
  local body = publish_request(math.random(TOPICS), payload)
  return wrk.format(nil, "/xmtp.backend.v1.PublishService/Publish", nil, body)
end

function response(status, headers, body)
  if status ~= 200 or not string.find(body, "grpc%-status: ?0\r") then failed = failed + 1 end
end

-- One line for scripts/bench: answers, per second, p50 and p99 in milliseconds, failures.
function done(summary, latency, requests)
  local failures = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  for _, thread in ipairs(threads) do failures = failures + thread:get("failed") end
  local rate = summary.requests / (summary.duration / 1e6)
  io.write(string.format("RESULT %d %.0f %.2f %.2f %d\n", summary.requests, rate,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, failures))
end
