-- Counts words in a text, builds trees of objects, and runs coroutines: nothing of what the training script does.
local Tree = {}
Tree.__index = Tree
function Tree.new(depth)
  local node = setmetatable({ depth = depth }, Tree)
  if depth > 0 then node.left, node.right = Tree.new(depth - 1), Tree.new(depth - 1) end
  return node
end
function Tree:sum() return self.left and self.depth + self.left:sum() + self.right:sum() or 1 end
print(Tree.new(12):sum())

local counts = {}
for line in io.lines(arg[1]) do
  for word in line:lower():gsub("[.,]", ""):gmatch("%S+") do counts[word] = (counts[word] or 0) + 1 end
end
local names = {}
for name in pairs(counts) do names[#names + 1] = name end
table.sort(names, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b end)
local lines = {}
for at = 1, 20 do lines[at] = ("%-12s %5d"):format(names[at], counts[names[at]]) end
print(table.concat(lines, "\n"))

local function primes(limit)
  return coroutine.wrap(function()
    local sieve = {}
    for n = 2, limit do
      if not sieve[n] then
        coroutine.yield(n)
        for multiple = n * n, limit, n do sieve[multiple] = true end
      end
    end
  end)
end
local hash = 0
for prime in primes(20000) do hash = (hash * 31 + prime) & 0xffffffff end
print(hash)
