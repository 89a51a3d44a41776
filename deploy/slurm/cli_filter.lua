-- A cli_filter for slurm.conf (CliFilterPlugins=lua; this file beside slurm.conf): looks at
-- SPILLWAY_JOB_GRAPH, the graph that task_prolog.sh rewrites, before a job is queued for it.
--
-- Slurm runs this in sbatch, srun and salloc, as the user, where the job is submitted. So it helps
-- users, but they can bypass it. It calls no server, and its refusals are one sentence.

-- Partitions whose jobs must name a graph: { gpu = true }. [""] is for jobs that name no partition.
local must_have_a_graph = {}

-- Whether graphs are on the submit host, too. If not, only the form of the path is checked.
local graphs_are_here = true

-- Variables set for jobs with a graph, unless they set them themselves:
-- { SPILLWAY_SERVER = "spillway.example.org:7070" }
local variables = {}

-- An option, nil if it is not given or the command does not have it.
local function given(options, name)
  local value = options[name]
  if value == nil or value == "" or value == "invalid-context" then return nil end
  return value
end

-- The variable in the job: from --export, or from this environment if that has ALL.
local function of_job(options, name)
  local export, all, value = given(options, "export"), false, nil
  if export == nil then return os.getenv(name) end
  for item in export:gmatch("[^,]+") do
    local key, text = item:match("^([^=]+)=(.*)$")
    if item:upper() == "ALL" then all = true end
    if key == name then value = text end
    if item == name then value = os.getenv(name) end
  end
  if value == nil and all then value = os.getenv(name) end
  return value
end

-- Why the graph cannot be used; nil if it can.
local function wrong_with(graph)
  if graph:find("%c") ~= nil then
    return "SPILLWAY_JOB_GRAPH has a line break or another control character, which no TaskProlog can "
      .. "export: rename the file"
  end
  if graph:sub(1, 1) ~= "/" then
    return string.format("SPILLWAY_JOB_GRAPH is '%s': give an absolute path, as tasks may start in "
      .. "another folder", graph)
  end
  if not graphs_are_here then return nil end
  local file, why = io.open(graph, "rb")
  if file == nil then
    return string.format("SPILLWAY_JOB_GRAPH cannot be opened (%s): give a graph that you can read",
      why)
  end
  local first, why_not = file:read(1)  -- A folder opens, and cannot be read.
  file:close()
  if first == nil then
    return string.format("SPILLWAY_JOB_GRAPH is '%s', which cannot be read (%s): give the file "
      .. "of a graph", graph, why_not or "it is empty")
  end
  return nil
end

local function needs_a_graph(options)
  for partition in (given(options, "partition") or ""):gmatch("[^,]+") do
    if must_have_a_graph[partition] then return partition end
  end
  if given(options, "partition") == nil and must_have_a_graph[""] then return "(default)" end
  return nil
end

function slurm_cli_pre_submit(options, offset)
  -- Steps of an accepted job are not checked, nor is --export-file, whose content is not visible here.
  if options.type == "srun" and os.getenv("SLURM_JOB_ID") ~= nil then return slurm.SUCCESS end
  if given(options, "export-file") ~= nil then return slurm.SUCCESS end

  local graph = of_job(options, "SPILLWAY_JOB_GRAPH")
  if graph == nil or graph == "" then
    local partition = needs_a_graph(options)
    if partition == nil then return slurm.SUCCESS end
    slurm.log_error("Jobs of the partition %s have to name the graph that they train: give "
      .. "--export=ALL,SPILLWAY_JOB_GRAPH=/path/of/graph.pb", partition)
    return slurm.ERROR
  end
  local why = wrong_with(graph)
  if why ~= nil then
    slurm.log_error("%s", why)
    return slurm.ERROR
  end

  if options.export ~= "invalid-context" then  -- salloc has none.
    local export = given(options, "export") or "ALL"
    for name, value in pairs(variables) do
      if of_job(options, name) == nil then export = export .. "," .. name .. "=" .. value end
    end
    if next(variables) ~= nil then options.export = export end
  end
  return slurm.SUCCESS
end

-- Slurm requires these, too.
function slurm_cli_setup_defaults(options, early)
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return slurm.SUCCESS
end
