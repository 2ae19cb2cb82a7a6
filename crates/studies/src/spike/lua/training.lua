-- Sorts words, solves the queens' problem, and multiplies matrices.
local words = {}
for line in io.lines(arg[1]) do
  for word in line:gmatch("%a+") do words[#words + 1] = word end
end
table.sort(words, function(a, b) return #a < #b or #a == #b and a < b end)
print(#words, words[1], words[#words])

local function queens(n)
  local solutions, rows, up, down = 0, {}, {}, {}
  local function place(column)
    if column > n then solutions = solutions + 1 return end
    for row = 1, n do
      if not rows[row] and not up[row + column] and not down[row - column] then
        rows[row], up[row + column], down[row - column] = true, true, true
        place(column + 1)
        rows[row], up[row + column], down[row - column] = nil, nil, nil
      end
    end
  end
  place(1)
  return solutions
end
print(queens(7))

local function matrix(n, f)
  local m = {}
  for i = 1, n do m[i] = {} for j = 1, n do m[i][j] = f(i, j) end end
  return m
end
local a, b = matrix(24, function(i, j) return i + j / 2 end), matrix(24, function(i, j) return i - j end)
local product = matrix(24, function(i, j)
  local sum = 0.0
  for k = 1, 24 do sum = sum + a[i][k] * b[k][j] end
  return sum
end)
print(string.format("%.3f", product[7][11]))
