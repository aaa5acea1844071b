metadata = {
  name                     = "gpusort"
  sql_name                 = "gpusort"
  image_name               = "gpusort"
  licenses                 = ["PostgreSQL"]
  shared_preload_libraries = ["gpusort"]
  extension_control_path   = []
  dynamic_library_path     = []
  ld_library_path          = []
  bin_path                 = []
  env                      = {}
  auto_update_os_libs      = false
  required_extensions      = []
  create_extension         = true

  versions = {
    bookworm = {
      "18" = {
        package = "0.2.1-1.pgdg12+1"
        sql     = "0.2.1"
      }
    }
    trixie = {
      "18" = {
        package = "0.2.1-1.pgdg13+1"
        sql     = "0.2.1"
      }
    }
  }
}
